"""The rules of the house: what a line may rely on because of the folder it stands in."""

import ast
import fnmatch
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import promise

HOUSE = Path(__file__).resolve().parents[1]
ROOMS = ("backstay", "workflows", "activities", "toolbox", "sandbox", "store", "system", "people", "gateways")
PRODUCT = (*ROOMS, "opening.py", "worker.py", "starter.py")
BESIDE = ("examples", "benchmarks", "docs")
EVERYWHERE = ("*",)
CLIENTS = ("backstay/calls.py", "backstay/client*", "backstay/testing/*", "backstay/library.py")
READERS = ("backstay/settings.py", "backstay/variables.py", "backstay/trust.py")
NOUNS_EXCEPT = (*CLIENTS, *READERS, "backstay/__main__.py", "backstay/logs.py")

# The imports that lead up from the lowest floor: they put the packages on the path, and then import what they start.
ARROWS_UP = {
    "backstay/__main__.py": ("gateways.terminal.app",),
    "backstay/client/stored.py": ("opening",),
    "backstay/client/plugin.py": ("system.child", "system.kept_child"),
}
# What a host program calls without the engine is handed no settings, so it reads its own.
LIBRARY_FORMS = {"sandbox/programs/standalone.py": ("backstay.settings",)}
# Per root: which name outside the standard library may be imported, and in which files.
MAY_IMPORT: dict[str, dict[str, tuple[str, ...]]] = {
    "backstay": {
        "backstay": EVERYWHERE,
        "pydantic": EVERYWHERE,
        "structlog": EVERYWHERE,
        "temporalio": CLIENTS,
        "opentelemetry": ("backstay/client/tracing.py", "backstay/client/exporting.py"),
        "cryptography": ("backstay/task/ledger/keys.py",),
        "genson": ("backstay/digests/digest.py",),
        "pydantic_settings": ("backstay/settings.py",),
        "dotenv": ("backstay/variables.py",),  # the reader that pydantic-settings itself uses
        "yaml": ("backstay/yaml_text.py",),
        "starlette": ("backstay/testing/*",),
        "uvicorn": ("backstay/testing/*",),
    },
    "workflows": {
        "workflows": EVERYWHERE,
        "backstay": EVERYWHERE,
        "pydantic": EVERYWHERE,
        "temporalio.workflow": EVERYWHERE,
        "temporalio.common": EVERYWHERE,
        "temporalio.exceptions": EVERYWHERE,
    },
    "activities": {
        "activities": EVERYWHERE,
        "backstay": EVERYWHERE,
        "toolbox": EVERYWHERE,
        "sandbox": EVERYWHERE,
        "store": EVERYWHERE,
        "system.clock": EVERYWHERE,
        "system.tasks": ("activities/telemetry/*",),
        "system.encodings": ("activities/endpoints/client.py",),
        "system.children": ("activities/media/fitting.py",),
        "PIL": ("activities/media/shrinking.py",),
        "pydantic": EVERYWHERE,
        "structlog": EVERYWHERE,
        "openai": EVERYWHERE,
        "pydantic_ai": ("activities/model/native/*",),
        "jinja2": EVERYWHERE,
        "httpx2": EVERYWHERE,
        "genai_prices": EVERYWHERE,
        "yaml": EVERYWHERE,
        "temporalio.activity": EVERYWHERE,
        "temporalio.exceptions": EVERYWHERE,
        "temporalio.client": EVERYWHERE,
        "temporalio.common": ("activities/steps.py", "activities/telemetry/*"),  # for how a run is asked
        "temporalio.service": EVERYWHERE,  # the home of the error that temporalio.client raises
        "temporalio.worker": ("activities/cached_runs.py", "activities/slots.py", "activities/telemetry/*"),
        "temporalio": (  # they watch workflows and activities from outside
            "activities/cached_runs.py",
            "activities/telemetry/*",
        ),
        "opentelemetry": ("activities/telemetry/*",),
    },
    "toolbox": {
        "toolbox": EVERYWHERE,
        "backstay": EVERYWHERE,
        "system": EVERYWHERE,
        "re2": ("toolbox/schema.py",),
        "yaml": ("toolbox/configuration/hosts.py",),
        "pydantic": EVERYWHERE,
        "structlog": EVERYWHERE,
        "mcp": EVERYWHERE,
        "jinja2": EVERYWHERE,
        "httpx2": EVERYWHERE,
        "jsonschema": EVERYWHERE,
        "referencing": EVERYWHERE,  # the part of jsonschema that finds what a $ref names
        "numpy": ("toolbox/catalog/embeddings.py",),
        "safetensors": ("toolbox/catalog/embeddings.py",),
        "tokenizers": ("toolbox/catalog/embeddings.py",),
    },
    "sandbox": {
        "sandbox": EVERYWHERE,
        "backstay": EVERYWHERE,
        "system": EVERYWHERE,
        "pydantic": EVERYWHERE,
        "jinja2": EVERYWHERE,
        "elftools": ("sandbox/images/*",),
        "structlog": ("sandbox/role.py",),
        "httpx2": ("sandbox/programs/over_http.py",),
    },
    "system": {"system": EVERYWHERE, "filelock": EVERYWHERE, "httpx2": ("system/dialing.py",)},
    "store": {
        "store": EVERYWHERE,
        "backstay": EVERYWHERE,
        "system": EVERYWHERE,
        "pydantic": EVERYWHERE,
        "structlog": EVERYWHERE,
        "sqlalchemy": EVERYWHERE,
        "alembic": EVERYWHERE,
        "cryptography": EVERYWHERE,
        "obstore": ("store/blobs/objects.py",),
        "asyncpg": ("store/database/postgres_hosts.py",),
    },
    "gateways": {
        "gateways": EVERYWHERE,
        "people": EVERYWHERE,
        "backstay": EVERYWHERE,
        "store": EVERYWHERE,
        "system": EVERYWHERE,
        "toolbox": ("gateways/terminal/*", "gateways/plugin_jobs/*"),
        "sandbox": ("gateways/terminal/*", "gateways/plugin_jobs/*"),
        "mcp": (
            "gateways/plugin_jobs/mcp_server.py",
            "gateways/terminal/memory/serving.py",
            "gateways/engine_mcp/*",
            "gateways/mcp_serving.py",
        ),
        "cryptography": ("gateways/links.py",),
        "pydantic": EVERYWHERE,
        "structlog": EVERYWHERE,
        "jinja2": EVERYWHERE,
        "httpx2": EVERYWHERE,
        "starlette": EVERYWHERE,
        "uvicorn": EVERYWHERE,
        "yaml": EVERYWHERE,
        "cyclopts": ("gateways/terminal/*",),
        "rich": ("gateways/terminal/*",),
        "prompt_toolkit": ("gateways/terminal/chat/*",),
        "temporalio": ("gateways/terminal/*",),
        "opening": ("gateways/terminal/*",),
        "activities": ("gateways/terminal/*",),
        "jwt": ("gateways/web/*", "gateways/published_keys.py"),
        "slack_bolt": ("gateways/slack/*",),
        "slack_sdk": ("gateways/slack/*",),
        "aiohttp": ("gateways/slack/*",),
    },
    "people": {
        "people": EVERYWHERE,
        "backstay": EVERYWHERE,
        "store": EVERYWHERE,
        "system": ("people/notices/*",),
        "structlog": ("people/notices/*",),
    },
    "opening.py": {
        "activities": EVERYWHERE,
        "backstay": EVERYWHERE,
        "sandbox": EVERYWHERE,
        "store": EVERYWHERE,
        "system": EVERYWHERE,
        "toolbox": EVERYWHERE,
        "temporalio.client": EVERYWHERE,
        "yaml": EVERYWHERE,
    },
    "starter.py": {"backstay": EVERYWHERE},
}
ONLY_NOUNS = ("toolbox", "sandbox", "store")
# Files that a process is started with, or that stand in for another module, and a command: nothing imports them.
PROGRAMS = (
    "gateways/terminal/worker.py",
    "gateways/plugins_stdio.py",
    "sandbox/guest/no_ctypes.py",
    "sandbox/guest/programs/runner.py",
    "sandbox/images/compile.py",
    "store/database/migrations/*",
    "toolbox/python_tools/bundled/*",
)
# Gateways lead to a service, and their settings and commands are named for it.
NAMED_FOR_A_SERVICE = (
    "gateways/slack/*",
    "gateways/terminal/serving/*",
    "gateways/terminal/app.py",
    "backstay/settings.py",
)
# Where the command line starts a gateway, or checks one.
BETWEEN_GATEWAYS = {
    "gateways/plugins_stdio.py": ("plugin_jobs",),
    "gateways/terminal/serving/*": ("slack", "web", "engine_mcp"),
    "gateways/terminal/doctor.py": ("mail",),
}
OPENED_WHEN_CALLED = {"activities", "opening", "sandbox", "toolbox"}
# What users name is loaded by the name that they give, and code in a jail stands in for the standard library.
DOTTED = re.compile(r"[a-z_]\w*(\.\w+)+")
LOADS_WHAT_USERS_NAME = ("backstay/testing/__main__.py", "toolbox/python_tools/*", "sandbox/guest/*")
NO_SURPRISE = {"os", "random", "secrets", "socket", "subprocess", "threading", "time", "asyncio"}
NO_WORKFLOW = {
    "os",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "threading",
    "time",
    "re",
    "fnmatch",
    "uuid",
    "pathlib",
}
FORBIDDEN_NAMES = {"shared", "util", "utils", "helper", "helpers", "common", "core", "base", "manager", "managers"}
FORBIDDEN_ENDINGS = ("Manager", "Helper", "Util", "Utils", "Base", "Service", "Handler")
FORBIDDEN_SYNONYMS = {"Goal", "Job", "Query"}


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that belongs to the project; outside a repository, every file that is not generated."""
    git = ("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(git, cwd=HOUSE, capture_output=True, check=False)
    if listed.returncode == 0:
        return tuple(HOUSE / name for name in sorted(listed.stdout.decode().split("\0")) if (HOUSE / name).is_file())
    skipped = {".git", ".venv", "build", "dist", "__pycache__", ".backstay"}
    return tuple(p for p in sorted(HOUSE.rglob("*")) if p.is_file() and not skipped & set(p.relative_to(HOUSE).parts))


def named(path: Path) -> str:
    return path.relative_to(HOUSE).as_posix()


@cache
def modules(*roots: str) -> tuple[Path, ...]:
    return tuple(p for p in tracked() if p.suffix == ".py" and p.relative_to(HOUSE).parts[0] in roots)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Every imported module by its full name; `from x import y` names `x.y` where that is a module."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                assert node.level == 0, f"{named(path)}:{node.lineno}: relative import"
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    inside = full.startswith("temporalio.") and node.module == "temporalio"
                    yield node.lineno, full if inside or is_module(full) else str(node.module)
            case _:
                pass


@cache
def is_module(name: str) -> bool:
    place = HOUSE.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def top(name: str) -> str:
    return name.partition(".")[0]


def within(path: Path, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(named(path), pattern) for pattern in patterns)


@promise("layout:imports")
@pytest.mark.parametrize("root", sorted(MAY_IMPORT))
def test_a_room_imports_only_what_the_table_allows(root):
    faults = []
    for path in modules(root):
        for line, name in imports(path):
            rule = next(
                (rule for rule in (name, ".".join(name.split(".")[:2]), top(name)) if rule in MAY_IMPORT[root]), ""
            )
            places = MAY_IMPORT[root].get(rule, ())
            if name in ARROWS_UP.get(named(path), ()):
                continue
            if top(name) not in sys.stdlib_module_names and not within(path, places):
                faults.append(f"{named(path)}:{line} {name}")
    assert not faults, "\n".join(faults)


def rooms() -> list[str]:
    """Every package of the product: the roots, the rooms inside them, and the rooms inside those."""
    return [".".join(path.relative_to(HOUSE).parts[:-1]) for path in modules(*ROOMS) if path.name == "__init__.py"]


def imported_rooms(room: str) -> set[str]:
    """What the modules of a room import from elsewhere in the product.

    Another root counts as a whole. In the same root, rooms are told apart, and so are the modules at its top. A root
    speaks for all rooms inside it, and names roots only.
    """
    root, folder, found = top(room), HOUSE.joinpath(*room.split(".")), set()
    for path in modules(root):
        if room != root and path.parent != folder:
            continue
        for _, name in imports(path):
            if name in ARROWS_UP.get(named(path), ()):
                continue
            if is_module(name) and top(name) != root:
                found.add(top(name))
            elif is_module(name) and room != root:
                place = name if HOUSE.joinpath(*name.split(".")).is_dir() else name.rpartition(".")[0]
                found.add(name if place == root else place)
    return found - {room}


def may_import(room: str) -> str:
    """The paragraph that the docstring of a room must hold, ready to paste."""
    found = ", ".join(sorted(imported_rooms(room))) or "no other room"
    return textwrap.fill(f"May import: {found}.", 120, break_long_words=False, break_on_hyphens=False)


@promise("layout:rooms")
def test_every_room_says_what_it_is_for_and_what_it_may_import():
    faults = []
    for room in rooms():
        path = HOUSE.joinpath(*room.split("."), "__init__.py")
        summary, *paragraphs = (ast.get_docstring(tree(path)) or "").split("\n\n")
        if not summary or may_import(room) not in paragraphs:
            faults.append(f"{named(path)}: below a line that says what it is for, write\n\n{may_import(room)}\n")
    assert not faults, "\n".join(faults)


@promise("docs:house")
def test_the_drawing_of_the_house_has_every_import_between_folders_and_no_other():
    page = (HOUSE / "docs/how-it-works.md").read_text(encoding="utf-8")
    drawing = page.partition("```mermaid\n")[2].partition("```")[0]
    arrows = re.findall(r"^ +(\w+) --> ([\w &]+)$", drawing, re.MULTILINE)
    drawn = {name: set(targets.split(" & ")) for name, targets in arrows}
    roots = {top(room) for room in rooms()}
    alone = {name: HOUSE / f"{name}.py" for name in ("opening", "worker", "starter")}
    built = {root: imported_rooms(root) for root in roots}
    built |= {name: {top(found) for _, found in imports(path)} & {*roots, *alone} for name, path in alone.items()}
    expected = "\n".join(f"    {name} --> {' & '.join(sorted(built[name]))}" for name in sorted(built) if built[name])

    assert drawn == {name: targets for name, targets in built.items() if targets}, f"draw these arrows:\n{expected}"


@promise("layout:imports")
def test_rooms_that_know_only_nouns_import_no_client_and_no_menu():
    faults = [
        f"{named(path)}:{line} {name}"
        for path in modules(*ONLY_NOUNS)
        for line, name in imports(path)
        if top(name) == "backstay"
        and name not in LIBRARY_FORMS.get(named(path), ())
        and fnmatch.fnmatch(name.replace(".", "/") + ".py", "backstay/*")
        and any(fnmatch.fnmatch(name.replace(".", "/") + ".py", pattern) for pattern in NOUNS_EXCEPT)
    ]
    assert not faults, "\n".join(faults)


@promise("layout:no-surprise")
def test_nouns_see_no_clock_no_chance_and_no_operating_system():
    faults = [
        f"{named(path)}:{line} {name}"
        for path in modules("backstay")
        if not within(path, NOUNS_EXCEPT)
        for line, name in imports(path)
        if top(name) in NO_SURPRISE
    ]
    assert not faults, "\n".join(faults)


@promise("layout:no-regex")
def test_workflows_reach_no_regular_expression_clock_or_file_through_any_noun():
    reached, waiting = {}, [(path, named(path)) for path in modules("workflows")]
    # The second reads files of the package alone, when a module is loaded, as an import does.
    not_followed = ("backstay/calls.py", "backstay/data_files.py")
    faults = []
    while waiting:
        path, way = waiting.pop()
        if path in reached or named(path) in not_followed:
            continue
        reached[path] = way
        for _, name in imports(path):
            if top(name) in NO_WORKFLOW:
                faults.append(f"{way} -> {name}")
            if top(name) == "backstay" and is_module(name):
                place = HOUSE.joinpath(*name.split("."))
                waiting.append(
                    (
                        place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py",
                        f"{way} -> {name}",
                    )
                )
    assert not faults, "\n".join(faults)


@promise("layout:sizes")
def test_no_module_is_longer_than_500_lines_and_no_function_than_40():
    faults = []
    for path in modules(*PRODUCT, *BESIDE):
        length = len(path.read_text(encoding="utf-8").splitlines())
        if length > 500:
            faults.append(f"{named(path)}: {length} lines")
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > 40:
                    faults.append(f"{named(path)}:{node.lineno} {node.name}: {lines} lines")
    assert not faults, "\n".join(faults)


@promise("layout:conditionals")
def test_no_conditional_stands_inside_another():
    faults = [
        f"{named(path)}:{inner.lineno} {ast.unparse(outer)[:100]}"
        for path in modules(*PRODUCT, *BESIDE)
        for outer in ast.walk(tree(path))
        if isinstance(outer, ast.IfExp)
        for inner in ast.walk(outer)
        if isinstance(inner, ast.IfExp) and inner is not outer
    ]
    assert not faults, "\n".join(faults)


@promise("layout:folders")
def test_no_folder_holds_more_than_25_modules_or_14_folders():
    folders = {path.parent for path in modules(*PRODUCT) if path.parent != HOUSE}
    counts = {
        named(folder): (
            sum(path.parent == folder and path.name != "__init__.py" for path in modules(*PRODUCT)),
            sum(other.parent == folder for other in folders),
        )
        for folder in folders
    }
    crowded = {name: count for name, count in counts.items() if count[0] > 25 or count[1] > 14}
    assert crowded == {}


@promise("layout:folders")
def test_a_module_under_40_lines_is_imported_by_three_others_or_is_a_program():
    importers = Counter(name for path in modules(*PRODUCT) for name in {found for _, found in imports(path)})
    faults = [
        f"{named(path)}: {len(path.read_text(encoding='utf-8').splitlines())} lines, {importers[dotted(path)]} uses"
        for path in modules(*PRODUCT)
        if path.parent != HOUSE
        and not path.stem.startswith("__")
        and len(path.read_text(encoding="utf-8").splitlines()) < 40
        and importers[dotted(path)] < 3
        and not within(path, PROGRAMS)
    ]
    assert not faults, "\n".join(faults)


def dotted(path: Path) -> str:
    return named(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@promise("layout:names")
def test_no_name_says_only_where_code_is_kept():
    files = [
        named(path)
        for path in modules(*PRODUCT, *BESIDE)
        for part in path.relative_to(HOUSE).with_suffix("").parts
        if FORBIDDEN_NAMES & set(part.split("_"))
    ]
    classes = [
        f"{named(path)}:{node.lineno} {node.name}"
        for path, node in classes_of(*PRODUCT, *BESIDE)
        if node.name.endswith(FORBIDDEN_ENDINGS) or node.name in FORBIDDEN_SYNONYMS
    ]
    assert not files + classes, "\n".join(files + classes)


def classes_of(*roots: str) -> list[tuple[Path, ast.ClassDef]]:
    return [(p, node) for p in modules(*roots) for node in tree(p).body if isinstance(node, ast.ClassDef)]


@promise("layout:cycles")
def test_modules_form_no_cycle():
    edges = {}
    for path in modules(*PRODUCT):
        name = named(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        edges[name] = {found for _, found in imports(path) if is_module(found)} - {name}
    while True:
        leaves = {name for name, needs in edges.items() if not needs & edges.keys()}
        if not leaves:
            break
        edges = {name: needs for name, needs in edges.items() if name not in leaves}
    # What is left are the cycles and the modules that lean on them.
    needed = Counter(need for needs in edges.values() for need in needs if need in edges)
    assert sorted(name for name in edges if needed[name]) == []


@promise("layout:timeless")
def test_code_and_documents_speak_of_what_is_and_not_of_plans_for_it():
    words = re.compile(
        r"\b(TODO|FIXME|XXX|HACK|MVP|roadmap|milestone|backlog)\b|\b(sprint|phase|ticket|issue) #?\d"
        r"|\b(later|next|future) (issue|release|phase)\b"
        r"|\bin a (later|future) version\b|\bnot (yet )?implemented\b|\bdesign section\b"
    )
    own = {Path(__file__), *(HOUSE / "tests/requirements").rglob("*")}
    faults = [
        f"{named(path)}:{number} {found.group()}"
        for path in tracked()
        if path.suffix in {".py", ".md", ".j2", ".sql", ".yaml", ".yml", ".toml"} and path not in own
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for found in words.finditer(line)
    ]
    assert not faults, "\n".join(faults)


@promise("layout:files")
def test_sql_markup_and_prompts_are_files_and_no_strings():
    signs = re.compile(
        r"^\s*(SELECT\b.+\bFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX|VIRTUAL)|PRAGMA\b"
        r"|BEGIN\s+IMMEDIATE)|<(html|body|div|span|table|script|p)[\s>]|\bYou are (a|an|the)\b",
        re.DOTALL,
    )
    faults = [
        f"{named(path)}:{node.lineno} {node.value[:40]!r}"
        for path in modules(*PRODUCT, "examples")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value not in docstrings(path)
        and (signs.search(node.value) or (len(node.value) > 600 and node.value not in verbose_patterns(path)))
    ]
    assert not faults, "\n".join(faults)


@cache
def verbose_patterns(path: Path) -> frozenset[str]:
    """Regular expressions that are compiled with re.VERBOSE, which may be as long as they need to be."""
    calls = (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call))
    verbose = (call for call in calls if any("re.VERBOSE" in ast.unparse(flags) for flags in call.args[1:]))
    return frozenset(call.args[0].value for call in verbose if isinstance(call.args[0], ast.Constant))


@cache
def docstrings(path: Path) -> frozenset[str]:
    """Strings that stand alone as statements: docstrings of modules, classes, functions and fields."""
    alone = (node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Expr))
    return frozenset(value.value for value in alone if isinstance(value, ast.Constant) and isinstance(value.value, str))


@promise("layout:machine")
def test_no_file_names_a_machine_or_a_registry():
    hosts = ("py" + "pi.org", "python" + "hosted.org", "registry." + "npmjs", "np" + "mjs.com", "registry." + "yarnpkg")
    places = ("/wo" + "rk/main", "/wo" + "rk/shared", "/ro" + "ot/", "/tmp/" + "brief", "/opt/" + "wheels")
    faults = [
        f"{named(path)}: {word}"
        for path in tracked()
        for word in (*hosts, *places)
        if word.encode() in path.read_bytes()
    ]
    assert not faults, "\n".join(faults)


@promise("layout:lock")
def test_the_lock_names_hashes_and_no_address():
    lock = (HOUSE / "requirements.lock").read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9].*", lock, re.MULTILINE)
    assert "://" not in lock
    assert pins
    assert all("==" in pin and pin.endswith("\\") for pin in pins)


@promise("layout:reasons")
def test_every_suppression_carries_its_reason():
    sign = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore|pragma:\s*no cover)(?P<rest>.*)$")
    reasoned = re.compile(r"(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*|\[[\w, -]+\])?\s*(-|#)\s*[a-zA-Z]")
    faults = []
    for path in modules(*PRODUCT, *BESIDE, "tests"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = sign.search(line)
            if found and path != Path(__file__) and not reasoned.search(found["rest"]):
                faults.append(f"{named(path)}:{number} {found.group()}")
    assert not faults, "\n".join(faults)


@promise("layout:reasons")
def test_every_rule_that_is_switched_off_says_why():
    section = (HOUSE / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.ruff.lint]")[2]
    lists = section.partition("[tool.ruff.lint.flake8")[0]
    silent = [line for line in lists.splitlines() if re.match(r'\s+"[A-Z]+\d*",', line) and "  # " not in line]
    assert silent == []


@promise("layout:declared")
def test_every_library_that_is_imported_is_declared():
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (requirement for extra in project["optional-dependencies"].values() for requirement in extra)
    every = (*project["dependencies"], *extras)
    declared = {re.split(r"[\[><=~;]", item)[0].lower().replace("-", "_") for item in every}
    by_import = {
        "yaml": "pyyaml",
        "dotenv": "python_dotenv",
        "re2": "google_re2",
        "elftools": "pyelftools",
        "jwt": "pyjwt",
        "opentelemetry": "opentelemetry_api",
        "pydantic_ai": "pydantic_ai_slim",
        "PIL": "pillow",
    }
    used = {top(name) for path in modules(*PRODUCT) for _, name in imports(path)} - sys.stdlib_module_names
    libraries = {by_import.get(name, name) for name in used - set(ROOMS) - {"opening", "worker", "starter"}}
    assert libraries - declared == set()


@promise("layout:late")
def test_no_room_imports_from_another_folder_by_a_string():
    faults = []
    for path in modules(*PRODUCT):
        root = path.relative_to(HOUSE).parts[0]
        for node in ast.walk(tree(path)):
            match node:
                # A log is named for what it is about, and everybody may import the lowest floor.
                case ast.Constant(value=str(name)) if (
                    DOTTED.fullmatch(name) and top(name) not in {"backstay", root} and is_module(name)
                ):
                    faults.append(f"{named(path)}:{node.lineno} {name}")
                case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[wanted, *_]) if called in {
                    "import_module",
                    "__import__",
                } and not within(path, LOADS_WHAT_USERS_NAME):
                    written = ast.unparse(wanted).lstrip("f").strip("'")
                    if not isinstance(wanted, ast.Constant | ast.JoinedStr) or top(written) in {*ROOMS} - {root}:
                        faults.append(f"{named(path)}:{node.lineno} {written}")
                case _:
                    pass
    assert not faults, "\n".join(faults)


def imported_at_once(path: Path) -> set[str]:
    """Every module that is imported as soon as this one is, by its full name."""
    at_once = (node for node in tree(path).body if isinstance(node, ast.Import | ast.ImportFrom))
    lines = {node.lineno for node in at_once}
    return {name for line, name in imports(path) if line in lines}


@promise("layout:late")
def test_gateways_open_the_engine_inside_the_function_that_needs_it():
    faults = [
        f"{named(path)} {name}"
        for path in modules("gateways")
        for name in imported_at_once(path)
        if top(name) in OPENED_WHEN_CALLED
        or (
            within(path, ("gateways/terminal/*",))
            and (top(name) == "store" or gateway_of(name) not in {"", "terminal"})
        )
    ]
    assert not faults, "\n".join(faults)


def gateway_of(name: str) -> str:
    """Which gateway a module belongs to; none for those that all of them share."""
    root, _, inside = name.partition(".")
    gateway = inside.partition(".")[0]
    return gateway if root == "gateways" and (HOUSE / root / gateway).is_dir() else ""


@promise("layout:imports")
def test_a_gateway_imports_no_other_one_but_to_start_or_check_it():
    faults = []
    for path in modules("gateways"):
        allowed = {"", gateway_of(dotted(path))}
        for places, started in BETWEEN_GATEWAYS.items():
            allowed |= set(started) if within(path, (places,)) else set()
        faults += [f"{named(path)}:{line} {name}" for line, name in imports(path) if gateway_of(name) not in allowed]
    assert not faults, "\n".join(faults)


@promise("layout:chains")
def test_import_contracts_hold_through_every_chain():
    linter = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run(
        (linter, "--no-cache"), cwd=HOUSE, capture_output=True, text=True, check=False, timeout=100
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@promise("layout:alive")
def test_no_variable_is_called_one():
    # Where it gets its value; prose that has the word need not be parsed.
    said = re.compile(rb"\bone\b\s*(=|,|:|\)|\]|in\b|$)", re.MULTILINE)
    faults = [
        f"{named(path)}:{node.lineno}"
        for path in tracked()
        if path.suffix == ".py" and not within(path, ("tests/hostile/corpus/*",))
        if said.search(path.read_bytes())
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Name) and node.id == "one") or (isinstance(node, ast.arg) and node.arg == "one")
    ]
    assert not faults, "\n".join(faults)


@promise("layout:words")
def test_every_word_of_the_glossary_is_a_class_or_says_that_it_is_none():
    known = {
        f"{named(path).removesuffix('.py').removesuffix('/__init__').replace('/', '.')}.{node.name}"
        for path, node in classes_of(*PRODUCT)
    }
    entries = glossary()
    assert {"Task", "Run", "Result", "RunContext", "ActivityCalls", "Approvals", "Handlers"} <= entries.keys()
    faults = {
        word: text
        for word, text in entries.items()
        if "No class" not in text and not known & set(re.findall(r"`([a-z_.]+\.[A-Z]\w*)`", text))
    }
    assert faults == {}


def glossary() -> dict[str, str]:
    """Entries by word: a line that begins with the word in bold, up to the next such line."""
    page = (HOUSE / "docs/glossary.md").read_text(encoding="utf-8")
    parts = re.split(r"^\*\*([A-Z]\w*(?: \w+)?)\*\*", page, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@promise("layout:words")
def test_every_class_that_the_glossary_names_exists():
    known = {
        f"{named(path).removesuffix('.py').removesuffix('/__init__').replace('/', '.')}.{node.name}"
        for path, node in classes_of(*PRODUCT)
    }
    cited = {name for text in glossary().values() for name in re.findall(r"`([a-z_.]+\.[A-Z]\w*)`", text)}
    assert cited - known == set()


@promise("layout:agnostic")
def test_no_provider_is_known_by_name():
    names = {"gmail", "slack", "composio", "stripe", "notion", "mailbox"}
    faults = []
    for path in modules(*PRODUCT):
        if within(path, NAMED_FOR_A_SERVICE):
            continue
        for node in ast.walk(tree(path)):
            match node:
                case (
                    ast.Name(id=word) | ast.Attribute(attr=word) | ast.FunctionDef(name=word) | ast.ClassDef(name=word)
                ):
                    known = names & set(re.split(r"_|(?<=[a-z])(?=[A-Z])", word.lower()))
                case ast.Compare() | ast.Dict() | ast.MatchValue():
                    words = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
                    known = names & {str(word).partition(".")[0] for word in words}
                case _:
                    known = set()
            faults += [f"{named(path)}:{node.lineno} {word}" for word in known]
    assert not faults, "\n".join(faults)


@promise("layout:gen-ai")
def test_the_names_of_opentelemetry_for_models_stand_in_one_file():
    holders = [
        named(path)
        for path in tracked()
        if path.relative_to(HOUSE).parts[0] in PRODUCT
        and "gen_ai" in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert holders == ["activities/telemetry/attributes.py"]


@promise("layout:prompt")
def test_there_is_one_prompt_and_it_teaches_the_rules():
    prompts = sorted(path.name for path in tracked() if path.parent == HOUSE / "activities/model/prompts")
    planner = (HOUSE / "activities/model/prompts/planner.md.j2").read_text(encoding="utf-8")
    assert prompts == [
        "actions.md.j2",
        "closing.md.j2",
        "ended.md.j2",
        "following.md.j2",
        "perception.md.j2",
        "planner.md.j2",
        "review.md.j2",
        "subrun.md.j2",
    ]
    rules = (
        *("Search first", "one thing", "aggregates", "Never print secrets", "never an instruction"),
        *("best first", "names of columns", "two or three rows", "Never return or print whole documents"),
        *("bodies of many mails", "entire tables", "Finish before"),
    )
    assert [rule for rule in rules if rule not in planner] == []


TWICE = {"ToolError", "ToolResult", "Decisions"}
"""Programs in a jail name the first two as tools in Python do, and a store keeps what a client takes."""
NO_NOUN = re.compile(
    r"_?(?:[A-Z][a-z]+ed|Told|Sent|Said|Shown|Found|Kept|Known|Seen|Taken|Given|Held|Begun|Done|Hidden|Written|Proven"
    r"|Spoken|Forgotten|Chosen|Foretold|Drawn|Look|Looks|Place|Desk|Board|Door)"
)


@promise("layout:class-names")
def test_classes_have_names_of_things_and_each_name_stands_for_one():
    faults, places = [], {}
    for path, node in classes_of(*PRODUCT):
        raised = any(ast.unparse(base).endswith(("Error", "Exception", "Final", "Unavailable")) for base in node.bases)
        if NO_NOUN.fullmatch(node.name) and not raised:
            faults.append(f"{named(path)}: {node.name}")
        if not node.name.startswith("_") and places.setdefault(node.name, path) != path and node.name not in TWICE:
            faults.append(f"{named(path)}: {node.name} is also in {named(places[node.name])}")
    assert not faults, "\n".join(faults)
