"""The APIs that endpoints speak: Chat Completions, and those of vendors, for which a library has to be there."""

import importlib.util
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import httpx2

from backstay.data_files import data_beside

Api = Literal["chat", "responses", "anthropic", "gemini"]
_LIBRARIES: Mapping[Api, tuple[str, ...]] = {
    "chat": (),
    "responses": ("pydantic_ai",),
    "anthropic": ("pydantic_ai", "anthropic"),
    "gemini": ("pydantic_ai", "google.genai"),
}


def is_installed(api: Api) -> bool:
    """Return whether what an API needs is there; nothing of it is loaded."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in _LIBRARIES[api])
    except ImportError:
        return False


@cache
def _about(api: Api) -> Mapping[str, Any]:
    return data_beside(__file__).get(api, {})


def base_of(address: str, api: Api) -> str:
    """Return an address without the part that the paths of its API hold themselves."""
    return address.rstrip("/").removesuffix(_about(api).get("root", ""))


def models_at(api: Api) -> str:
    """Return where an API lists its models."""
    return _about(api).get("models", "/models")


class Credentials:
    """Put a key where an API looks for it, and leave it out where there is none; the SDK wants one in any case."""

    def __init__(self, api: Api, key: str | None) -> None:
        """Send this key, or none."""
        self._about = _about(api)
        self._key = key

    async def __call__(self, request: httpx2.Request) -> None:
        """Change a request before it is sent."""
        name = self._about.get("key", "authorization")
        if not self._key or name != "authorization":
            request.headers.pop("authorization", None)
        if self._key and name != "authorization":
            request.headers[name] = self._key
        for header, value in self._about.get("headers", {}).items():
            request.headers.setdefault(header, value)
