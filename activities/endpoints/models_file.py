"""Read models.yaml: the endpoints, the models there, and which of them is asked for what."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StringConstraints, ValidationError

from activities.endpoints.apis import Api, is_installed
from activities.endpoints.dialect import PLAIN, Dialect
from backstay.canonical import read_json
from backstay.errors import SettingsInvalid
from backstay.settings import Price, Settings, key_of, plain_address
from backstay.yaml_text import read_yaml

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MOST_BYTES = 1 << 20
_SHORTEST_SECRET = 8
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$")]
Detected = Literal["auto"] | StrictBool
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks before it answers."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EndpointEntry(_Strict):
    """Say where models are asked, and with which key."""

    base_url: Annotated[str, AfterValidator(plain_address)]
    key: str | None = None
    """A reference such as `${OPENAI_API_KEY}`; None where the endpoint needs no key."""
    api: Api = "chat"
    """Which API it speaks: Chat Completions, or one of its vendor's own, for which the extra `native` is needed."""
    dialect: Dialect = PLAIN
    """How it is spoken to, where neither its vendor is known nor its refusals say so."""


class ModelEntry(_Strict):
    """Describe one model."""

    endpoint: str
    model: str = Field(min_length=1, max_length=200)
    """What the endpoint calls it."""
    price: Price | None = None
    """None: as `BACKSTAY_PRICES` or the built-in list say of what the endpoint calls it."""
    context_tokens: int | None = Field(default=None, ge=1000, le=10_000_000)
    """What a request and its answer may take together; None: as the settings say."""
    tools: Detected = "auto"
    """Whether it calls functions."""
    strict: Detected = "auto"
    """Whether it takes strict JSON Schemas."""
    images: Detected = "auto"
    """Whether it takes pictures."""
    pdfs: Detected = "auto"
    """Whether it takes PDFs."""
    image_side: int | None = Field(default=None, ge=64, le=8192)
    """The longest side of a picture that it is shown, in pixels; larger ones are made smaller. None: 1568."""
    image_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """As how many tokens a picture is reserved for; None: as is known of the model."""
    effort: Effort | None = None
    """How much it thinks before it decides; None: as its vendor has it."""
    fallback: tuple[str, ...] = Field(default=(), max_length=10)
    """The models that are asked in turn when this one fails."""


class Uses(_Strict):
    """Say which model is asked for what; None: the one that the run is driven by."""

    act: str | None = None
    perception: str | None = None
    closing: str | None = None


class ModelsFile(_Strict):
    """Hold the content of models.yaml."""

    endpoints: dict[Name, EndpointEntry] = Field(default_factory=dict)
    models: dict[Name, ModelEntry] = Field(default_factory=dict)
    use: Uses = Uses()


@dataclass(frozen=True)
class Models:
    """Hold what models.yaml says, with its keys."""

    file: ModelsFile = field(default_factory=ModelsFile)
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By endpoint."""

    @property
    def secrets(self) -> frozenset[str]:
        """Return the keys that are long enough to be looked for in payloads."""
        return frozenset(
            key for key in self.keys.values() if len(key.encode("utf-8", "surrogatepass")) >= _SHORTEST_SECRET
        )


def read_models(settings: Settings) -> Models:
    """Return what models.yaml, or models.json, says; without a file, nothing. Raises SettingsInvalid."""
    path = place_of(settings)
    if path is None:
        return Models()
    try:
        file = ModelsFile.model_validate(_data(path))
    except ValidationError as error:
        raise SettingsInvalid("; ".join(f"{path}: {_explain(fault)}" for fault in error.errors())) from None
    faults = [f"{path}: {fault}" for fault in _faults(file)]
    keys: dict[str, str] = {}
    for name, entry in file.endpoints.items():
        if entry.key is None:
            continue
        reference = _REFERENCE.fullmatch(entry.key)
        where = f"{path}: endpoints.{name}.key"
        if reference is None:
            faults.append(f"{where}: not a reference; write ${{NAME}}, and set that variable where the worker starts")
        elif not (key := settings.environment.get(reference[1])):
            faults.append(
                f"{where}: the environment variable {reference[1]} is not set; set it where the worker starts"
            )
        else:
            try:
                keys[name] = key_of(key)
            except ValueError as error:
                faults.append(f"{where}: the environment variable {reference[1]} {error}")
    if faults:
        raise SettingsInvalid("; ".join(faults))
    return Models(file, keys)


def place_of(settings: Settings) -> Path | None:
    """Return the file to read, or None when there is none; raises SettingsInvalid when it is not clear which."""
    path = settings.models
    if "models" in settings.model_fields_set:
        if not path.is_file():
            raise SettingsInvalid(f"BACKSTAY_MODELS: there is no file {path}; correct the path, or leave it out")
        return path
    found = [place for place in (path, path.with_suffix(".json")) if os.path.lexists(place)]
    if len(found) > 1:
        raise SettingsInvalid(f"{found[0]} and {found[1]}: only one of them can be obeyed; remove the other")
    return next(iter(found), None)


def _data(path: Path) -> Any:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise SettingsInvalid(f"{path}: larger than {_MOST_BYTES} bytes; name a file that lists models")
        text = path.read_text(encoding="utf-8-sig")
        data = read_json(text) if path.suffix == ".json" else read_yaml(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise SettingsInvalid(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    return {} if data is None else data


def _faults(file: ModelsFile) -> Iterator[str]:
    """Yield what names something that is not there."""
    for name, entry in file.endpoints.items():
        if not is_installed(entry.api):
            yield f"endpoints.{name}.api: {entry.api!r} needs the extra `native`; run pip install 'backstay[native]'"
    for name, entry in file.models.items():
        if entry.endpoint not in file.endpoints:
            yield f"models.{name}.endpoint: there is no endpoint {_known(entry.endpoint, file.endpoints)}"
        for place, other in enumerate(entry.fallback):
            field = f"models.{name}.fallback.{place}"
            if other not in file.models:
                yield f"{field}: there is no model {_known(other, file.models)}"
            elif other == name or other in entry.fallback[:place]:
                yield f"{field}: {other!r} was asked already when its turn comes; remove it"
    for purpose, name in file.use:
        if name is not None and name not in file.models:
            yield f"use.{purpose}: there is no model {_known(name, file.models)}"


def _known(name: str, known: Mapping[str, Any]) -> str:
    shown = repr(name[:80])
    return f"{shown}; name one of {', '.join(known)}" if known else f"{shown}; add it"


_ENTRIES = {"endpoints": EndpointEntry, "models": ModelEntry}


def _explain(fault: Any) -> str:
    """Return one line for one fault that pydantic found; a key is never quoted."""
    path = [str(part) for part in fault["loc"] if part not in {"[key]", "bool", "literal['auto']"}]
    where = ".".join(path) or "the file"
    if "[key]" in fault["loc"]:
        return f"{where}: not a usable name; use letters, digits and . _ : / -, at most 100"
    match fault["type"]:
        case "extra_forbidden":
            return f"{where}: unknown field; {_fix(path)}"
        case "missing":
            return f"{where}: required field is missing; add it"
        case _:
            hidden = isinstance(fault.get("input"), dict | list) or path[-1:] == ["key"] or "base_url" in path
            value = "" if hidden else f" (value {str(fault.get('input'))[:80]!r})"
            return f"{where}: {str(fault['msg']).removeprefix('Value error, ')}{value}"


def _fix(path: list[str]) -> str:
    match path:
        case ["use", _]:
            known = list(Uses.model_fields)
        case ["models", _, "price", _]:
            known = list(Price.model_fields)
        case ["endpoints", _, "dialect", _]:
            known = list(Dialect.model_fields)
        case [("endpoints" | "models") as root, _, _]:
            known = list(cast("type[BaseModel]", _ENTRIES[root]).model_fields)
        case _:
            known = list(ModelsFile.model_fields)
    near = difflib.get_close_matches(path[-1], known, 1)
    return f"did you mean {near[0]!r}?" if near else f"remove it (known here: {', '.join(known)})"
