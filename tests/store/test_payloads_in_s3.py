"""Large payloads in a bucket: every host finds them, their hash is compared, and no fault of a server loses one."""

import asyncio
import hashlib
import os
import sys
import uuid

import pytest

from backstay.errors import SettingsInvalid, StoreUnavailable, WorkerMisfit
from backstay.settings import Settings
from opening import sandbox_variables
from store.blobs import objects as objects_module
from store.blobs.objects import place_of
from store.blobs.shown import key_of
from store.fitness import Belongings
from store.opening import open_store
from store.runs.pruning import PayloadsKept
from tests.requirements import promise
from tests.s3_server import ACCESS, KEY, SECRET
from tests.store.sharing import assert_shared

LARGE = b"l" * 300_000
BROUGHT = Belongings(keys={"BACKSTAY_ENCRYPTION_KEYS": []})


@pytest.fixture
def bucket(s3_server):
    name = s3_server.bucket(f"b-{uuid.uuid4().hex}")
    yield name
    s3_server.fault = ""


@pytest.fixture
def place(s3_server, bucket):
    return place_of(f"s3://{bucket}/a/b", s3_server.endpoint, ACCESS)


def key(run, name):
    return f"a/b/{key_of(run)}/{name}"


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("backstay.db")]


@promise("store:s3-blobs")
async def test_hosts_read_each_others_payloads_and_the_bucket_holds_the_large_ones_only(
    database_url, s3_server, bucket, place, tmp_path
):
    options = {"database_url": database_url, "objects": place}
    # With SQLite they are two processes of one host.
    homes = (tmp_path / "a", tmp_path / "b") if database_url else (tmp_path / "a", tmp_path / "a")
    async with open_store(home=homes[0], **options) as here, open_store(home=homes[1], **options) as there:
        refs, sealed = await assert_shared(here, there, LARGE)
        lying = s3_server.objects(bucket)
        assert lying.keys() == {key("w/1", refs[1]), key("w/1", f"{sealed[1]}.sealed")}
        assert lying[key("w/1", refs[1])] == LARGE
        # What is sealed is no more readable in the bucket than in the database.
        assert LARGE[:100] not in lying[key("w/1", f"{sealed[1]}.sealed")]
        assert (await there.blobs.of("w/1").erase([refs[1]]), len(s3_server.objects(bucket))) == (1, 1)
        freed = await here.pruning.free_payloads(["w/1"])
        assert (freed.payloads, freed.bytes > len(LARGE)) == (3, True)
        assert s3_server.objects(bucket) == {}
    assert files(tmp_path) == []


@promise("store:s3-blobs")
async def test_parts_of_a_large_payload_are_read_by_their_range(s3_server, place, tmp_path):
    data = os.urandom(3_000_000)
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        ref, small = await store.blobs.of("w/1").put(data), await store.blobs.of("w/1").put(b"small")
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        await store.blobs.of("w/2").follow("w/1")
        blobs, read = store.blobs.of("w/2"), b""
        s3_server.asked.clear()
        while len(read) < len(data):
            size, part = await blobs.part(ref, len(read), 1 << 20)
            assert size == len(data)
            read += part
        assert read == data
        ranges = [asked for method, path, asked in s3_server.asked if path.endswith(key("w/1", ref))]
        assert ranges == ["bytes=0-1048575", "bytes=1048576-2097151", "bytes=2097152-3145727"]
        assert await blobs.part(small, 0, 1 << 20) == (5, b"small")
        with pytest.raises(WorkerMisfit, match="no stored result"):
            await blobs.part("0" * 40, 0, 1 << 20)


@promise("store:s3-damage")
@pytest.mark.parametrize("damage", [b"", LARGE[:100_000], b"x" + LARGE[1:], LARGE + b"l"])
async def test_an_object_that_was_swapped_or_cut_is_noticed_and_healed_when_it_is_written_again(
    s3_server, bucket, place, tmp_path, damage
):
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        ref, sealed = await store.blobs.of("w/r").put(LARGE), await store.blobs.of("w/r").seal(LARGE)
    for name in s3_server.objects(bucket):
        s3_server.put(bucket, name, damage)
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        for read in (store.blobs.of("w/r").get(ref), store.blobs.of("w/r").unseal(sealed)):
            with pytest.raises(StoreUnavailable, match=r"not what was written|is damaged"):
                await read
        found = await store.verifying.payloads()
        assert (len(found.faults), found.payloads[place.address]) == (2, 2)
        assert (await store.blobs.of("w/r").put(LARGE), await store.blobs.of("w/r").seal(LARGE)) == (ref, sealed)
        assert (await store.blobs.of("w/r").get(ref), await store.blobs.of("w/r").unseal(sealed)) == (LARGE, LARGE)
        assert (await store.verifying.payloads()).faults == ()


@promise("store:s3-faults")
@pytest.mark.parametrize("fault", ["503", "403", "slow", "cut", "away", "no bucket"])
async def test_a_server_that_fails_is_a_store_that_is_away_and_nothing_is_lost(
    s3_server, bucket, place, tmp_path, monkeypatch, fault
):
    monkeypatch.setattr(objects_module, "_REQUEST_S", 0.3)
    monkeypatch.setattr(objects_module, "_RETRY_S", 1)
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        ref = await store.blobs.of("w/r").put(LARGE)
        sealed = await store.blobs.of("w/r").seal(LARGE)
    elsewhere = {"away": (bucket, "http://127.0.0.1:9"), "no bucket": ("none-" + bucket, s3_server.endpoint)}
    name, endpoint = elsewhere.get(fault, (bucket, s3_server.endpoint))
    s3_server.fault = "" if fault in elsewhere else fault
    failing = place_of(f"s3://{name}/a/b", endpoint, ACCESS)
    async with open_store(database_url=None, home=tmp_path, objects=failing) as store:
        blobs = store.blobs.of("w/r")
        asked = [lambda: blobs.get(ref), lambda: blobs.unseal(sealed), lambda: blobs.part(ref, 0, 1 << 20)]
        asked += [] if fault == "cut" else [lambda: blobs.put(LARGE + b"2"), lambda: blobs.seal(LARGE + b"2")]
        for ask in asked:
            with pytest.raises(StoreUnavailable, match=f"store: s3://{name}/a/b at {endpoint}") as away:
                await ask()
            assert not {KEY, SECRET} & {*str(away.value).split()}
            assert SECRET not in repr(away.value.__cause__)
            assert len(str(away.value)) < 400
        # What is not durable is named by nothing.
        s3_server.fault = ""
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        assert (await store.blobs.of("w/r").get(ref), await store.blobs.of("w/r").unseal(sealed)) == (LARGE, LARGE)


@promise("store:s3-blobs")
async def test_a_payload_is_durable_before_the_row_that_names_it(s3_server, bucket, place, tmp_path):
    async with open_store(database_url=None, home=tmp_path, objects=place) as store, store.together():
        named = asyncio.Event()
        ref = await store.blobs.of("w/r").put(LARGE)
        await store.write_later(lambda _: s3_server.objects(bucket), _told(named, {key("w/r", ref): LARGE}))
    assert named.is_set()


def _told(event, expected):
    async def then(found):
        assert found == expected
        event.set()

    return then


@promise("store:s3-blobs")
async def test_two_workers_write_the_same_payload_at_once_and_both_read_it(database_url, place, tmp_path):
    options = {"database_url": database_url, "home": tmp_path, "objects": place}
    async with open_store(**options) as here, open_store(**options) as there:
        each = [store.blobs.of("w/r") for store in (here, there) * 4]
        refs = await asyncio.gather(*[blobs.put(LARGE) for blobs in each])
        sealed = await asyncio.gather(*[blobs.seal(LARGE) for blobs in each])
        assert len({*refs}) == len({*sealed}) == 1
    async with open_store(**options) as store:
        assert await store.blobs.of("w/r").get(refs[0]) == LARGE
        assert await store.blobs.of("w/r").unseal(sealed[0]) == LARGE


@promise("store:s3-blobs")
async def test_what_is_written_while_its_run_is_pruned_goes_with_the_next_pruning(s3_server, bucket, place, tmp_path):
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        await store.blobs.of("w/other").put(LARGE)
        await store.blobs.of("w/r").put(LARGE)
        late = key("w/r", "f" * 40)

        def writes(method, path):
            if method == "DELETE":
                s3_server.before = lambda *_: None
                s3_server.put(bucket, late, b"late")

        s3_server.before = writes
        assert (await store.pruning.free_payloads(["w/r"])).payloads == 1
        assert s3_server.objects(bucket).keys() - {late} == {key("w/other", hash_of(LARGE))}
        assert late in s3_server.objects(bucket)
        assert (await store.pruning.free_payloads(["w/r"], dry_run=True)).payloads == 1
        assert (await store.pruning.free_payloads(["w/r"])).payloads == 1
        assert s3_server.objects(bucket).keys() == {key("w/other", hash_of(LARGE))}


@promise("store:prune-bucket")
async def test_what_went_before_a_place_failed_is_counted(s3_server, bucket, place, tmp_path):
    runs = ["w/a", "w/b"]
    async with open_store(database_url=None, home=tmp_path) as store:
        await store.blobs.of("w/c").put(LARGE)
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        for run in runs:
            await store.blobs.of(run).put(LARGE)

        def fails(method, path):
            s3_server.fault = "403" if method == "DELETE" and last in path else ""

        last = key_of(max(runs, key=key_of))
        s3_server.before = fails
        with pytest.raises(PayloadsKept) as stopped:
            await store.pruning.free_payloads([*runs, "w/c"])
        s3_server.before, s3_server.fault = lambda *_: None, ""
        assert (stopped.value.freed.payloads, stopped.value.freed.bytes) == (2, 2 * len(LARGE))
        assert (await store.pruning.free_payloads([*runs, "w/c"])).payloads == 1


@promise("store:s3-removed")
async def test_payloads_go_from_a_server_that_says_when_one_is_gone_already(s3_server, bucket, place, tmp_path):
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        for some in range(20):
            await store.blobs.of("w/r").put(LARGE + bytes([some]))
        asked = s3_server.objects(bucket)
        s3_server.fault = "gone"
        assert (await store.pruning.free_payloads(["w/r"])).payloads == 20
    assert s3_server.objects(bucket) == {}
    assert {path for method, path, _ in s3_server.asked if method == "DELETE"} >= {f"/{bucket}/{key}" for key in asked}


def hash_of(data):
    return hashlib.sha256(data).hexdigest()[:40]


@promise("workers:misfit-place")
async def test_a_bucket_belongs_to_one_store_and_a_store_to_one_bucket(s3_server, bucket, place, tmp_path):
    async with open_store(database_url=None, home=tmp_path / "a", objects=place) as store:
        assert await store.fitness.fault() == ""
        await store.fitness.demand(BROUGHT)
        assert await store.fitness.fault() == ""
        await store.fitness.demand(BROUGHT)
        assert store.identity.id.encode() in s3_server.objects(bucket)["a/b/.store.json"]
    async with open_store(database_url=None, home=tmp_path / "b", objects=place) as store:
        with pytest.raises(WorkerMisfit, match=f"BACKSTAY_PAYLOADS: {place.address} holds the payloads of store"):
            await store.fitness.demand(BROUGHT)
    another = place_of(f"s3://{bucket}/other", s3_server.endpoint, ACCESS)
    async with open_store(database_url=None, home=tmp_path / "a", objects=another) as store:
        with pytest.raises(WorkerMisfit, match=f"the store's workers have {place.address}"):
            await store.fitness.demand(BROUGHT)
        assert f"the store's workers have {place.address}" in await store.fitness.fault()
        # The same address at another server.
        await store.fitness.adopt(BROUGHT)
        s3_server.put(bucket, "other/.store.json", b"{}")
        with pytest.raises(WorkerMisfit, match=r"holds no \.store\.json of this store"):
            await store.fitness.demand(BROUGHT)


@promise("store:s3-settings")
async def test_what_cannot_be_used_is_named_with_its_fix_before_any_work(
    s3_server, bucket, place, tmp_path, monkeypatch
):
    for wrong in ({}, {"AWS_ACCESS_KEY_ID": KEY}, {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": SECRET}):
        with pytest.raises(SettingsInvalid, match="needs credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
            place_of(f"s3://{bucket}", s3_server.endpoint, wrong)
    for name, fault, said in (
        (f"no-{bucket}", "", "NoSuchBucket; make the bucket"),
        (bucket, "403", "check the AWS_"),
        (bucket, "expired", "400 ExpiredToken; check the AWS_ variables with the credentials"),
    ):
        s3_server.fault = fault
        wrong = place_of(f"s3://{name}/a", s3_server.endpoint, ACCESS)
        async with open_store(database_url=None, home=tmp_path, objects=wrong) as store:
            with pytest.raises(
                SettingsInvalid, match=f"BACKSTAY_PAYLOADS: s3://{name}/a at {s3_server.endpoint}"
            ) as told:
                await store.fitness.demand(BROUGHT)
            assert said in str(told.value)
            assert SECRET not in str(told.value)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(SettingsInvalid, match=r"pip install 'backstay\[s3\]'"):
        async with open_store(database_url=None, home=tmp_path / "new", objects=place):
            pass
    assert not (tmp_path / "new" / "backstay.db").exists()


@promise("store:s3-buckets")
@pytest.mark.parametrize(
    ("fault", "said", "more"),
    [
        ("path style", "403 SecondLevelDomainForbidden; set", {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}),
        ("locked", "400 InvalidRequest; if the bucket has Object Lock", {"AWS_CHECKSUM_ALGORITHM": "SHA256"}),
    ],
)
async def test_what_a_bucket_wants_is_said_with_the_variable_that_gives_it(
    s3_server, bucket, tmp_path, monkeypatch, fault, said, more
):
    # No name leads to the bucket here: what is asked of its host goes to the server by way of a proxy.
    monkeypatch.setenv("HTTP_PROXY", s3_server.endpoint)
    s3_server.fault = fault
    address, endpoint = f"s3://{bucket}/a/b", "http://buckets.example"
    ((variable, _),) = more.items()
    with pytest.raises(SettingsInvalid, match=f"BACKSTAY_PAYLOADS: {address} at .* answers {said}.*{variable}"):
        async with open_store(
            database_url=None, home=tmp_path, objects=place_of(address, s3_server.endpoint, ACCESS)
        ) as store:
            await store.fitness.demand(BROUGHT)
    place = place_of(address, endpoint if fault == "path style" else s3_server.endpoint, ACCESS | more)
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        await store.fitness.demand(BROUGHT)
        ref = await store.blobs.of("w/r").put(LARGE)
    s3_server.fault = ""
    assert s3_server.objects(bucket).keys() == {"a/b/.store.json", key("w/r", ref)}


@promise("store:s3-blobs")
async def test_credentials_may_come_from_the_platform_of_a_container(s3_server, bucket, tmp_path):
    (tmp_path / "token").write_text("token of the container", encoding="utf-8")
    found = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{s3_server.endpoint}/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    place = place_of(f"s3://{bucket}", s3_server.endpoint, found)
    async with open_store(database_url=None, home=tmp_path, objects=place) as store:
        ref = await store.blobs.of("w/r").put(LARGE)
    assert s3_server.objects(bucket) == {f"{key_of('w/r')}/{ref}": LARGE}
    assert ("GET", "/credentials", "token of the container") in s3_server.asked


@promise("store:s3-blobs")
def test_the_process_that_runs_programs_gets_neither_the_address_nor_the_credentials(s3_server, bucket, monkeypatch):
    given = {**ACCESS, "BACKSTAY_S3_ENDPOINT": s3_server.endpoint, "BACKSTAY_PAYLOADS": f"s3://{bucket}/p"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = Settings.load(None)
    assert settings.secrets() >= {SECRET}
    variables = sandbox_variables(settings)
    assert variables["BACKSTAY_PAYLOADS"] == "database"
    said = " ".join((*variables, *variables.values()))
    assert not [some for some in (KEY, SECRET, bucket, s3_server.endpoint, "AWS_") if some in said]
