"""The model endpoints of a worker, and what is known of the models there."""

import asyncio
import contextlib
import difflib
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2

from activities.endpoints.apis import Api, base_of, models_at
from activities.endpoints.client import ModelClient
from activities.endpoints.models_file import Effort, Models, read_models
from activities.endpoints.pricing import OPENAI, TokenPrice, price_of
from activities.endpoints.sight import Sight, sight_of
from backstay.errors import SettingsInvalid, TaskInvalid, WorkerMisfit
from backstay.settings import Settings
from backstay.shown import one_line

NAMES_S = 5.0
"""How long an endpoint may take to name its models."""
MOST_NAMES = 12


@dataclass(frozen=True)
class Target:
    """Hold a model, where it is asked, and how."""

    name: str
    """What tasks, events and bills call it."""
    listed: bool
    """Whether it is an entry of models.yaml."""
    model: str
    """What its endpoint calls it."""
    where: str
    """The address of the endpoint, for people."""
    client: ModelClient
    price: TokenPrice | None
    api: Api = "chat"
    context_tokens: int | None = None
    tools: bool | Literal["auto"] = "auto"
    strict: bool | Literal["auto"] = "auto"
    sight: Sight = field(default_factory=Sight)
    effort: Effort | None = None
    fallback: tuple[str, ...] = ()
    dialect: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What models.yaml says of how its endpoint is spoken to."""

    @property
    def by(self) -> str | None:
        """Return what the transcript says of answers of this model; nothing of one that is not an entry."""
        return self.name if self.listed else None


@dataclass(frozen=True)
class Endpoints:
    """Find models by name: entries of models.yaml, and any other name at the default endpoint."""

    settings: Settings
    models: Models
    default: ModelClient
    clients: Mapping[str, ModelClient]
    """By endpoint."""

    @property
    def names(self) -> list[str]:
        """Return the names of the models that runs use unless they name another one at the default endpoint."""
        return list(dict.fromkeys([self._main(), *self.models.file.models]))

    def is_listed(self, name: str) -> bool:
        """Return whether a name is an entry of models.yaml."""
        return name in self.models.file.models

    def main(self, *wanted: str | None) -> Target:
        """Return the model that drives runs: the first that is wanted, else the one that the operator has named."""
        name = self._main(*wanted)
        return self.target(name, listed=self.is_listed(name))

    def _main(self, *wanted: str | None) -> str:
        settings = self.settings
        own = settings.model if "model" in settings.model_fields_set else None
        named = (*wanted, own, self.models.file.use.act, settings.model)
        return next(name for name in named if name is not None)

    def target(self, name: str, *, listed: bool) -> Target:
        """Return a model; raises WorkerMisfit when it was an entry of models.yaml and is none here."""
        if not listed:
            where = self.settings.openai_base_url or "the default endpoint of OpenAI"
            price = price_of(self.settings, name, where=self.settings.openai_base_url or OPENAI)
            sight = sight_of(name)
            return Target(name, False, name, where, self.default, price, sight=sight)  # a field
        entry = self.models.file.models.get(name)
        if entry is None:
            raise WorkerMisfit(f"models.yaml: this worker knows no model {one_line(name, 80)!r}; list it again")
        where = self.models.file.endpoints[entry.endpoint].base_url
        return Target(
            name=name,
            listed=True,
            model=entry.model,
            where=where,
            client=self.clients[entry.endpoint],
            price=price_of(self.settings, entry.model, entry.price, where),
            api=self.models.file.endpoints[entry.endpoint].api,
            context_tokens=entry.context_tokens,
            tools=entry.tools,
            strict=entry.strict,
            sight=sight_of(
                entry.model,
                images=entry.images,
                pdfs=entry.pdfs,
                side=entry.image_side,
                tokens=entry.image_tokens,
            ),
            effort=entry.effort,
            fallback=entry.fallback,
            dialect=self.models.file.endpoints[entry.endpoint].dialect.model_dump(exclude_unset=True),
        )

    def natives(self) -> list[Target]:
        """Return the models whose endpoints speak an API of their vendor."""
        listed = [self.target(name, listed=True) for name in self.models.file.models]
        return [target for target in listed if target.api != "chat"]

    def chain(self, target: Target) -> tuple[Target, ...]:
        """Return a model and those that are asked in turn when it fails."""
        return (target, *(self.target(name, listed=True) for name in target.fallback))

    def chain_for(self, purpose: Literal["perception", "closing"]) -> tuple[Target, ...]:
        """Return the models that are asked for this; none where the operator names none."""
        name: str | None = getattr(self.models.file.use, purpose)
        return () if name is None else self.chain(self.target(name, listed=True))

    def _unusable(self, name: str) -> SettingsInvalid | TaskInvalid:
        """Return why a model that is not an entry of models.yaml cannot be asked where there is no default endpoint."""
        if not self.models.file.models:
            return SettingsInvalid(
                "OPENAI_API_KEY: the worker has no key and no OPENAI_BASE_URL; set one and start it again"
            )
        known = one_line(", ".join(self.models.file.models), 500)
        fault = (
            f"models.yaml has no model {one_line(name, 80)!r}; {self._nearest(name)}name one that it has ({known}), "
            "or set OPENAI_API_KEY or OPENAI_BASE_URL where the worker starts"
        )
        # Nobody but the operator has named this one.
        if name == self.main().name:
            return SettingsInvalid(f"BACKSTAY_MODEL: {fault}")
        return TaskInvalid(f"model: {fault}")

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, [*self.models.file.models], 1)
        return f"did you mean {near[0]!r}? Otherwise " if near and near[0] != name else ""

    def require_usable(self, chain: Iterable[Target], *, usd: bool) -> None:
        """Raise SettingsInvalid when a model cannot be asked, TaskInvalid when a limit in USD lacks a price."""
        for target in chain:
            if not target.listed and not self.settings.has_endpoint:
                raise self._unusable(target.name)
            if usd and target.price is None:
                fix = "give it a price in models.yaml" if target.listed else "set BACKSTAY_PRICES for it"
                fix = f"{self._nearest(target.name)}{fix}"
                raise TaskInvalid(
                    f"model: no price is known for {one_line(target.name, 80)!r}, so max_llm_cost_usd cannot be kept; "
                    f"{fix}, or budget.max_llm_cost_usd to null"
                )


async def models_of(target: Target) -> list[str]:
    """Return what models an endpoint lists; raises whatever is wrong there."""
    client = await target.client.opened()
    answer = await client.get(models_at(target.api), cast_to=httpx2.Response)
    data = answer.json()
    # Some gateways answer with the list alone.
    listed = data if isinstance(data, list) else data.get("data") or data.get("models") or []
    named = [model.get("id") or model.get("name") for model in listed if isinstance(model, dict)]
    return [str(name).removeprefix("models/") for name in named if name]


async def names_at(target: Target) -> list[str]:
    """Return what models an endpoint has, those of a like name first; none where it does not say."""
    try:
        async with asyncio.timeout(NAMES_S):
            found = await models_of(target)
    except Exception:  # whatever is wrong there, the refusal of the model is told
        return []
    near = difflib.get_close_matches(target.model, found, MOST_NAMES, 0.4)
    return [*dict.fromkeys([*near, *found])][:MOST_NAMES]


@contextlib.asynccontextmanager
async def open_endpoints(settings: Settings) -> AsyncGenerator[Endpoints]:
    """Yield the model endpoints, each with a client that is opened when it is first asked.

    Raises SettingsInvalid for a models.yaml that cannot be obeyed.
    """
    models = read_models(settings)
    own = settings.openai_api_key
    default = ModelClient(settings.openai_base_url, None if own is None else own.get_secret_value())
    clients = {
        name: ModelClient(base_of(entry.base_url, entry.api), models.keys.get(name), entry.api)
        for name, entry in models.file.endpoints.items()
    }
    try:
        yield Endpoints(settings, models, default, clients)
    finally:
        for client in (default, *clients.values()):
            await client.close()
