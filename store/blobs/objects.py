"""Keep large payloads as objects of a store that speaks the protocol of S3, so that several hosts share no folder.

An object is named as a file would be: a folder for each run, and in it the name of the payload. It is written whole or
not at all. Nothing here trusts what it reads: the caller compares the hash.
"""

import asyncio
import re
from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from backstay.errors import SettingsInvalid, StoreUnavailable
from store.blobs.marker import NAME, marker_of, store_in
from store.blobs.shown import key_of

if TYPE_CHECKING:
    from obstore.store import S3Store

_PIECE = 8 * 1024 * 1024
"""What one request reads at most, so that a slow line has time for it."""
_CONNECT_S = 5
_REQUEST_S = 30
_RETRIES = 2
_RETRY_S = 10
_REMOVED_AT_ONCE = 16
_REGION = "us-east-1"
_CREDENTIALS = (
    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"},
    {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"},
)
"""What is enough to be let in, one of these; with less, the library would ask the network for the role of a machine."""
_ACCESS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    *("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "AWS_CHECKSUM_ALGORITHM"),
)
_TRUE = frozenset({"1", "true", "on", "yes", "y"})
"""As the library reads it."""
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_IN_THE_HOST = "set AWS_VIRTUAL_HOSTED_STYLE_REQUEST=true, since it wants the bucket in the name of the host"
_ADDRESS = "check BACKSTAY_S3_ENDPOINT, AWS_REGION and the bucket"
_RIGHTS = "check the AWS_ variables with the credentials, and the rights of their user on the bucket"
_FIXES = {
    "SecondLevelDomainForbidden": _IN_THE_HOST,
    "PathStyleDomainForbidden": _IN_THE_HOST,
    "InvalidRequest": "if the bucket has Object Lock, take one without it, or set AWS_CHECKSUM_ALGORITHM=SHA256",
    "ExpiredToken": _RIGHTS,
    "InvalidToken": _RIGHTS,
    "TokenRefreshRequired": _RIGHTS,
    "PermanentRedirect": _ADDRESS,
    "301": _ADDRESS,
    "400": _ADDRESS,
    "NoSuchBucket": "make the bucket, or name another one in BACKSTAY_PAYLOADS",
    "401": _RIGHTS,
    "403": _RIGHTS,
}
_WRONG = {"NoSuchBucket", "PermanentRedirect", "301", "400", "401", "403"}
"""What stays so until an operator changes a setting or the bucket."""


@dataclass(frozen=True)
class ObjectLocation:
    """Say where objects are, and who may read and write them."""

    address: str
    """Such as `s3://bucket/prefix`."""
    endpoint: str
    access: Mapping[str, str] = field(repr=False)
    """Region, credentials and what else a server wants, by their AWS_ variables in lower case."""

    @property
    def shown(self) -> str:
        """Return what an error may say of the place."""
        return f"{self.address} at {self.endpoint}"


def place_of(address: str, endpoint: str | None, variables: Mapping[str, str]) -> ObjectLocation:
    """Return a place with region and credentials as the variables of AWS say them; raises SettingsInvalid for none."""
    said = {name.upper(): value for name, value in variables.items() if value}
    if not any(said.keys() >= each for each in _CREDENTIALS):
        raise SettingsInvalid(
            "BACKSTAY_PAYLOADS: s3:// needs credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as variables "
            "or as files in BACKSTAY_SECRET_FILES"
        )
    region = said.get("AWS_REGION") or said.get("AWS_DEFAULT_REGION") or _REGION
    access = {name.lower(): said[name] for name in _ACCESS if name in said} | {"aws_region": region}
    return ObjectLocation(address, endpoint or f"https://s3.{region}.amazonaws.com", access)


class ObjectPart(NamedTuple):
    """Hold a part of a payload; the reader who joins the parts compares the hash of the whole."""

    size: int
    """Bytes of the whole payload."""
    data: bytes


class Object(NamedTuple):
    """Name an object by its run's folder and its payload's name."""

    folder: str
    name: str
    size: int


class Objects:
    """Keep, read and remove objects."""

    def __init__(self, place: ObjectLocation) -> None:
        """Send nothing yet. Raises SettingsInvalid for a library that is missing and for settings that cannot be."""
        self.place = place
        self._store = _opened(place)

    @property
    def address(self) -> str:
        """Return the address that all workers of a store must have in common."""
        return self.place.address

    async def put(self, run: str, name: str, data: bytes) -> None:
        """Keep a payload durably; the same name stands for the same content."""
        await self.write(key_of(run), name, data)

    async def get(self, run: str, name: str) -> bytes | None:
        """Return a payload as it lies there, or None."""
        return await self.read(key_of(run), name)

    async def part(self, run: str, name: str, offset: int, most: int) -> ObjectPart | None:
        """Return a part of a payload, or None for no such payload."""
        return await self._part(f"{key_of(run)}/{name}", offset, most)

    async def erase(self, run: str, names: Sequence[str]) -> frozenset[str]:
        """Remove payloads of a run by their names; return those that were there."""
        folder = key_of(run)
        there = frozenset(names).intersection([each.name for each in await self.listed(folder)])
        await self.remove([Object(folder, name, 0) for name in there])
        return there

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Keep an object durably."""
        await self._ask(self._store.put_async(f"{folder}/{name}", data))

    async def read(self, folder: str, name: str) -> bytes | None:
        """Return an object, or None."""
        first = await self._part(f"{folder}/{name}", 0, _PIECE)
        if first is None:
            return None
        data = bytearray(first.data)
        while len(data) < first.size:
            more = await self._part(f"{folder}/{name}", len(data), _PIECE)
            if more is None or not more.data:
                # It was replaced meanwhile; the reader who compares the hash sees that.
                break
            data += more.data
        return bytes(data)

    async def remove(self, objects: Sequence[Object]) -> None:
        """Remove objects, also those that are gone already."""
        # Each by a request of its own: many servers know none for several, and some say that an object is gone already.
        for start in range(0, len(objects), _REMOVED_AT_ONCE):
            some = objects[start : start + _REMOVED_AT_ONCE]
            names = [f"{each.folder}/{each.name}" for each in some]
            await asyncio.gather(*[self._ask(self._store.delete_async(name)) for name in names])

    async def folders(self) -> list[str]:
        """Return the folders of all runs that have objects here."""
        found = await self._ask(self._store.list_with_delimiter_async())
        return [] if found is None else sorted(found["common_prefixes"])

    async def listed(self, folder: str) -> list[Object]:
        """Return all objects of a folder."""
        found: list[Object] = []
        with self._faults():
            async for chunk in self._store.list(folder):
                for each in chunk:
                    inner, _, name = each["path"].rpartition("/")
                    found.append(Object(inner, name, each["size"]))
        return found

    async def check(self) -> None:
        """Raise SettingsInvalid for a bucket or credentials that cannot be used, StoreUnavailable for silence."""
        with _settings_faults():
            await self.listed(NAME)

    async def owner(self) -> str:
        """Return the id of the store that the place belongs to, empty where nothing says so; raises as `check`."""
        await self.check()
        found = await self._part(NAME, 0, _PIECE)
        return "" if found is None else store_in(found.data)

    async def own(self, store: str) -> None:
        """Let the place belong to a store from now on; raises as `check`."""
        with _settings_faults():
            await self._ask(self._store.put_async(NAME, marker_of(store)))

    async def _part(self, key: str, offset: int, most: int) -> ObjectPart | None:
        try:
            found = await self._ask(self._store.get_async(key, options={"range": (offset, offset + most)}))
        except _NoSuchRange:
            # Of an object that was cut no part is there.
            return ObjectPart(offset, b"")
        if found is None:
            return None
        with self._faults():
            return ObjectPart(found.meta["size"], bytes(await found.bytes_async()))

    async def _ask(self, request: Awaitable[Any]) -> Any:
        """Return the answer to a request; None for an object that is not there."""
        try:
            with self._faults():
                return await request
        except FileNotFoundError:
            return None

    @contextmanager
    def _faults(self) -> Generator[None]:
        """Raise StoreUnavailable for every fault but a missing object; the words of a server are repeated nowhere."""
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self._fault(str(error)) from None
            raise
        except BaseError as error:
            raise self._fault(str(error)) from None

    def _fault(self, said: str) -> StoreUnavailable:
        code, status = _CODE.search(said), _STATUS.search(said)
        signs = [found[1] for found in (code, status) if found is not None]
        if "416" in signs:
            return _NoSuchRange("store: no such part of an object")
        told = f"it answers {' '.join(reversed(signs))}" if signs else _silence(said)
        fix = next((_FIXES[sign] for sign in signs if sign in _FIXES), "check that it runs and can be reached")
        line = f"{self.place.shown}: {told}; {fix}"
        return _Refused(line) if _WRONG.intersection(signs) else StoreUnavailable(f"store: {line}")


class _NoSuchRange(StoreUnavailable):
    """The range that was asked for is beyond the end of an object."""


class _Refused(StoreUnavailable):
    """The place cannot be used as the settings say; a worker that runs already waits until it can be."""

    def __init__(self, said: str) -> None:
        """Keep the reason, for who reads settings."""
        super().__init__(f"store: {said}")
        self.said = said


@contextmanager
def _settings_faults() -> Generator[None]:
    """Raise SettingsInvalid for a place that cannot be used as the settings say."""
    try:
        yield
    except _Refused as refused:
        raise SettingsInvalid(f"BACKSTAY_PAYLOADS: {refused.said}") from None


def _silence(said: str) -> str:
    """Return how a server failed to answer."""
    if "kind: Timeout" in said or "timed out" in said or "TimedOut" in said:
        return f"no answer within {_REQUEST_S} s"
    return "cannot be reached" if "kind: Connect" in said else "the answer breaks off"


def _opened(place: ObjectLocation) -> "S3Store":
    try:
        from obstore.store import S3Store
    except ImportError:
        raise SettingsInvalid(
            "BACKSTAY_PAYLOADS: s3:// needs the package obstore; install it with: pip install 'backstay[s3]'"
        ) from None
    bucket, _, prefix = place.address.removeprefix("s3://").partition("/")
    # A variable of the process would come before the setting.
    server = _server(place, bucket)
    endpoint = {"endpoint": server, "aws_endpoint_url_s3": server}
    try:
        return S3Store(
            bucket,
            prefix=prefix or None,
            config={**place.access, **endpoint, "disable_bulk_delete": True},  # pyright: ignore[reportArgumentType] - keys by their variables
            client_options={
                "allow_http": place.endpoint.startswith("http://"),
                "connect_timeout": timedelta(seconds=_CONNECT_S),
                "timeout": timedelta(seconds=_REQUEST_S),
            },
            retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_S)},
        )
    except Exception as error:
        # The text of the error may hold what it was given.
        raise SettingsInvalid(
            f"BACKSTAY_PAYLOADS: {place.shown} cannot be opened ({type(error).__name__}); check BACKSTAY_S3_ENDPOINT, "
            "AWS_REGION and the AWS_ variables with the credentials"
        ) from None


def _server(place: ObjectLocation, bucket: str) -> str:
    """Return what the address of a request begins with; the library itself puts no bucket into the name of a host."""
    scheme, _, host = place.endpoint.partition("://")
    wanted = place.access.get("aws_virtual_hosted_style_request", "").lower() in _TRUE
    return f"{scheme}://{bucket}.{host}" if wanted and not host.startswith(f"{bucket}.") else place.endpoint
