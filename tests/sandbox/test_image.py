"""Images: the same bytes from the same interpreter, ordinary Python inside, and nothing a jail has no use for."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.images.image import MISSING_MODULES, Image, build_image, content_hash, find_image, importable
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile, command, interpreter_arguments
from sandbox.limits import Limits
from tests.requirements import promise
from tests.sandbox.places import HOUSE, as_nobody, image, libraries, shared

KINDS = ("python", "data")
# asyncio and email import these, so they are there; a program that names them is told that they are not.
FOR_OTHERS = {"socket", "subprocess"}


def in_jail(built: Image, source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python source in a jail with this image, through the profile of programs."""
    nsjail = Nsjail.find()
    profile = JailProfile(nsjail, built, limits=Limits(memory_mb=1024)).write(folder)
    arguments = (*interpreter_arguments()[:-1], "-c", source)
    return subprocess.run(
        command(nsjail, profile, *arguments), capture_output=True, text=True, check=False, timeout=60, env={}
    )


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    """A folder of images with what killed builds left behind: one long ago, one just now."""
    place = tmp_path_factory.mktemp("images")
    for name in (".building-1-old", ".building-2-young"):
        (place / name / "root").mkdir(parents=True)
    os.utime(place / ".building-1-old", (1, 1))
    return place


@pytest.fixture(scope="module")
def built(images) -> Image:
    return build_image("python", images)


@promise("sandbox:image")
@pytest.mark.thorough
def test_builds_in_different_folders_have_the_same_hash_and_bytes(built, images):
    other = image()
    assert other.path.parents[1] != built.path.parents[1]
    assert other.hash == built.hash == content_hash(built.path) == content_hash(other.path)
    assert built.path == images / built.hash / "root"


@promise("sandbox:image-found")
def test_a_second_build_finds_the_first_and_leaves_it_untouched(built, images):
    made = built.path.parent.stat().st_ctime_ns
    assert build_image("python", images) == built
    assert find_image(built.hash, images) == built
    assert built.path.parent.stat().st_ctime_ns == made


@promise("plans:review-image")
@pytest.mark.soak
def test_the_image_of_reviews_is_the_same_in_every_folder(tmp_path):
    built = build_image("review", tmp_path / "images")
    assert built.hash == image("review").hash == content_hash(built.path)


@promise("plans:review-image")
@pytest.mark.thorough
def test_the_image_of_reviews_is_named_by_its_content_and_holds_its_tools():
    built = image("review")
    assert built.hash == content_hash(built.path)
    site = next(built.path.glob("usr/lib/python3.*/site-packages"))
    assert (built.path / "usr/bin/ruff").stat().st_mode & 0o111
    assert {"mypy", "pytest"} <= {place.name for place in site.iterdir()}
    assert list(site.glob("mypy/typeshed/stdlib/builtins.pyi"))


@promise("plans:review-image")
def test_without_the_extra_the_image_of_reviews_is_missing_and_says_what_to_install(tmp_path):
    source = (
        "import sys\nfrom pathlib import Path\nfrom backstay.errors import ImageMissing\n"
        "from sandbox.images.image import build_image\n"
        "try:\n    build_image('review', Path(sys.argv[1]))\nexcept ImageMissing as error:\n    print(error)\n"
    )
    environment = {"PYTHONPATH": f"{HOUSE}:{libraries()}", "PATH": "/usr/bin:/bin"}
    command_ = (sys.executable, "-S", "-c", source, str(tmp_path / "images"))
    done = subprocess.run(command_, env=environment, capture_output=True, text=True, check=False, timeout=150)
    assert "ruff is not installed; install backstay[review]" in done.stdout, done.stderr


@promise("sandbox:killed-build")
def test_what_a_killed_build_left_behind_is_removed_once_it_is_old(built, images):
    left = {place.name for place in images.iterdir()} - {built.hash, "recipes"}
    assert left == {".building-2-young"}


@promise("sandbox:again")
def test_an_image_that_was_removed_is_built_again_with_the_same_hash(built, images):
    shutil.rmtree(built.path.parent)
    assert find_image(built.hash, images) is None
    assert build_image("python", images) == built


@promise("sandbox:other-hash")
@pytest.mark.parametrize("hash_", ["0" * 64, "", "..", "../x", "a/b", "recipes"])
def test_a_hash_that_names_no_image_finds_none(hash_):
    assert find_image(hash_, shared() / "images") is None


@promise("sandbox:other-hash")
def test_an_image_renamed_to_another_hash_is_not_found(tmp_path):
    built = image()
    (tmp_path / ("0" * 64)).mkdir()
    shutil.copyfile(built.path.parent / "image.json", tmp_path / ("0" * 64) / "image.json")
    (tmp_path / ("0" * 64) / "root").mkdir()
    assert find_image("0" * 64, tmp_path) is None


@promise("sandbox:image")
def test_every_change_below_the_root_changes_the_content_hash(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("one", encoding="utf-8")
    (tmp_path / "link").symlink_to("file")
    hashes = [content_hash(tmp_path)]
    (tmp_path / "file").write_text("two", encoding="utf-8")
    hashes.append(content_hash(tmp_path))
    (tmp_path / "file").chmod(0o755)
    hashes.append(content_hash(tmp_path))
    (tmp_path / "file").rename(tmp_path / "folder/file")
    hashes.append(content_hash(tmp_path))
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("folder")
    hashes.append(content_hash(tmp_path))
    (tmp_path / "empty").mkdir()
    hashes.append(content_hash(tmp_path))
    assert len(set(hashes)) == len(hashes)
    os.utime(tmp_path / "folder/file", (1, 1))
    assert content_hash(tmp_path) == hashes[-1]


@promise("sandbox:image-modules")
@pytest.mark.parametrize("kind", KINDS)
def test_every_module_said_to_be_importable_imports_in_a_jail(kind, tmp_path):
    source = f"""
import importlib, json
faults = {{}}
for name in {sorted(importable(kind))!r}:
    try:
        importlib.import_module(name)
    except BaseException as error:
        faults[name] = repr(error)
print("\\n" + json.dumps(faults))
"""
    done = in_jail(image(kind), source, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}


@promise("sandbox:image-modules")
@pytest.mark.parametrize("kind", KINDS)
def test_every_module_said_to_be_missing_is_neither_importable_nor_there(kind, tmp_path):
    stand_ins = {"ctypes"} if kind == "data" else set()
    source = f"""
import importlib.util, json
print(json.dumps([name for name in {sorted(MISSING_MODULES)!r} if importlib.util.find_spec(name)]))
"""
    done = in_jail(image(kind), source, tmp_path)
    found = set(json.loads(done.stdout)) - set(sys.builtin_module_names)
    assert found <= FOR_OTHERS | stand_ins
    assert not importable(kind) & MISSING_MODULES.keys()


@promise("sandbox:image-modules")
def test_the_standard_library_is_either_importable_or_said_to_be_missing():
    public = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    assert public <= importable("python") | MISSING_MODULES.keys()


@promise("sandbox:image-libraries")
def test_ordinary_modules_with_libraries_of_their_own_work_in_a_jail(tmp_path):
    source = """
import bz2, datetime, decimal, hashlib, json, lzma, sqlite3, statistics, xml.etree.ElementTree, zlib, zoneinfo
base = sqlite3.connect("/tmp/base.sqlite")
base.execute("create table t (a)"); base.executemany("insert into t values (?)", [(1,), (2,)]); base.commit()
madrid = datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Madrid"))
print(json.dumps({
    "sqlite": base.execute("select sum(a) from t").fetchone()[0],
    "offset": madrid.utcoffset().total_seconds(),
    "zones": len(zoneinfo.available_timezones()) > 400,
    "decimal": str(decimal.Decimal(1) / 3)[:6],
    "packed": [one.decompress(one.compress(b"x")).decode() for one in (bz2, lzma, zlib)],
    "sha256": hashlib.sha256(b"").hexdigest()[:8],
    "sha3": hashlib.sha3_256(b"").hexdigest()[:8],
    "xml": xml.etree.ElementTree.fromstring("<a><b/></a>")[0].tag,
    "median": statistics.median([3, 1, 2]),
}))
"""
    done = in_jail(image(), source, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "sqlite": 3,
        "offset": 7200.0,
        "zones": True,
        "decimal": "0.3333",
        "packed": ["x", "x", "x"],
        "sha256": "e3b0c442",
        "sha3": "a7ffc6f8",
        "xml": "b",
        "median": 2,
    }


@promise("sandbox:image-libraries")
def test_numpy_and_pandas_work_in_a_jail_without_a_word_on_the_error_output(tmp_path):
    source = """
import io, json
import numpy, pandas
table = "day,n\\n2024-01-31,1\\n2024-02-29,2\\n2024-02-01,3\\n"
frame = pandas.read_csv(io.StringIO(table), parse_dates=["day"])
print(json.dumps({
    "months": frame.groupby(frame.day.dt.month).n.sum().to_dict(),
    "inverse": numpy.linalg.inv(numpy.array([[2.0, 0], [0, 4]])).tolist(),
    "madrid": str(frame.day.dt.tz_localize("Europe/Madrid").iloc[0]),
}))
"""
    done = in_jail(image("data"), source, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "months": {"1": 1, "2": 5},
        "inverse": [[0.5, 0.0], [0.0, 0.25]],
        "madrid": "2024-01-31 00:00:00+01:00",
    }


@promise("sandbox:extra")
@pytest.mark.parametrize(
    ("imported", "refusal"),
    [
        ("elftools.elf.elffile", "numpy is not installed; install backstay[data]"),
        ("pydantic", "elftools is not installed; install backstay[sandbox]"),
    ],
)
def test_an_image_whose_extra_is_not_installed_is_refused_by_name(imported, refusal, tmp_path):
    source = """
import importlib, sys
from pathlib import Path
from sandbox.images.image import build_image
importlib.import_module(sys.argv[2])
sys.path = [place for place in sys.path if "site-packages" not in place]
try:
    build_image("data", Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
"""
    command_line = (sys.executable, "-c", source, str(tmp_path / "images"), imported)
    done = subprocess.run(
        command_line, cwd=HOUSE, env={"PYTHONPATH": str(HOUSE)}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == f"ImageMissing the image cannot be built: {refusal}\n"


@promise("sandbox:image")
def test_nothing_of_the_machine_is_in_an_image():
    root = image("data").path
    names = {path.name for path in root.rglob("*")}
    assert not names & {"site-packages", "passwd", "sitecustomize.py", "usercustomize.py", "localtime"}
    # Compiled interpreters hold the place they were built for; what we write and compile must hold none of ours.
    for path in root.rglob("*.pyc"):
        assert f"{HOUSE}/".encode() not in path.read_bytes(), path
    # A system's own Python lives where that of every jail does.
    own = "" if sys.base_prefix == "/usr" else sys.base_prefix
    for path in root.rglob("_sysconfigdata*.py"):
        assert not own or own.encode() not in path.read_bytes()


@promise("sandbox:image")
def test_every_file_of_the_jail_is_in_the_image_and_counts_in_its_hash():
    inside = {path.name for path in (image().path / "usr/lib/backstay").glob("*.py")}
    assert inside == {path.name for path in (HOUSE / "sandbox/guest/programs").glob("*.py")}


@promise("sandbox:image-found")
@pytest.mark.thorough
def test_a_user_without_rights_builds_an_image_that_is_found_again(reachable):
    # The library that reads binaries imports this module in passing; the interpreter of an image has none.
    source = """
import sys, types
sys.modules["socketserver"] = types.SimpleNamespace(ThreadingTCPServer=None, StreamRequestHandler=None)
from pathlib import Path
from sandbox.images.image import build_image, content_hash
built = build_image("python", Path("images"))
assert build_image("python", Path("images")) == built
assert content_hash(built.path) == built.hash
print(built.path.is_absolute())
"""
    done = as_nobody(source, folder=reachable / "nobody")
    assert (done.stdout, done.stderr) == ("True\n", "")
