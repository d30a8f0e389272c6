"""Whatever attempts do, crash and say: no send goes out twice without proof."""

import itertools
from dataclasses import dataclass, field

import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.effects.effect import EffectState
from backstay.errors import BackstayError
from store.effects.types import Intent
from store.opening import open_store
from tests.requirements import promise
from tests.sizes import sized

LEASE = 30
TTL = 70
NUMBERS = itertools.count(1)
SETTLED = (EffectState.APPLIED, EffectState.FAILED)
WORKERS = st.integers(0, 1)
BEGIN = st.tuples(st.just("begin"), WORKERS, st.sampled_from([1, 1, 1, 2, 2, 3]))
STEPS = st.one_of(
    BEGIN,
    BEGIN,
    st.tuples(st.just("settle"), WORKERS, st.sampled_from([*SETTLED, EffectState.NOT_SENT, EffectState.UNKNOWN])),
    st.tuples(st.just("resolve"), st.none(), st.sampled_from([EffectState.NOT_SENT, EffectState.APPLIED])),
    st.tuples(st.just("wait"), st.none(), st.sampled_from([1, LEASE - 5, LEASE, TTL])),
    st.tuples(st.just("crash"), WORKERS, st.none()),
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Model:
    """Know what is allowed, from what was observed alone."""

    idempotent: bool
    sent: int = 0
    lease: float = 0
    first: float | None = None
    may_send_again: bool = True
    closed: bool = False
    settled: EffectState | None = None
    tokens: dict[int, str] = field(default_factory=dict)
    holder: str | None = None
    said: tuple[str, EffectState] | None = None
    """Which attempt settled it, and as what; it may say so again."""

    def goes(self, send: int, token: str, now: float) -> None:
        assert self.settled is None
        assert send >= self.sent
        if self.may_send_again:
            assert send > self.sent or not self.closed
        else:
            assert self.idempotent
            assert send == self.sent
            assert now >= self.lease
            assert now < self.first + TTL
        self.first = now if self.first is None else self.first
        self.said = None
        self.sent, self.lease, self.holder = send, now + LEASE, token
        self.may_send_again = self.closed = False

    def is_settled(self, state: EffectState) -> None:
        assert self.settled is None
        self.holder = None
        self.may_send_again = state is EffectState.NOT_SENT
        self.settled = state if state in SETTLED else None


@pytest_asyncio.fixture(scope="module", params=["sqlite", "postgres"])
async def clocked(request, tmp_path_factory, postgres):
    clock = Clock()
    url = None if request.param == "sqlite" else await postgres.new_database()
    async with open_store(database_url=url, home=tmp_path_factory.mktemp("home"), clock=clock) as store:
        yield store, clock


@promise("effects:once")
@settings(max_examples=sized(300, 100), deadline=None)
@given(steps=st.lists(STEPS, min_size=4, max_size=16), idempotent=st.booleans())
async def test_no_send_goes_out_twice_without_proof(clocked, steps, idempotent):
    store, clock = clocked
    n = next(NUMBERS)
    effect = f"w/r/{n}"
    clock.now = 1000.0
    model = Model(idempotent)
    for kind, worker, value in steps:
        match kind:
            case "begin":
                intent = Intent(
                    effect_id=effect,
                    run="w/r",
                    n=n,
                    tool="mail.send",
                    args_digest="d",
                    send=value,
                    lease_s=LEASE,
                    user_id="ana",
                )
                begun = await store.effects.begin(
                    intent, idempotency_ttl=TTL if idempotent else None, attempt=1, epoch_differs=False
                )
                if begun.kind == "go":
                    model.goes(value, begun.token, clock.now)
                    model.tokens[worker] = begun.token
            case "settle" if worker in model.tokens:
                mine = await store.effects.settle(effect, model.tokens[worker], value)
                said = (model.tokens[worker], value)
                assert mine == (model.tokens[worker] == model.holder or said == model.said)
                if mine and said != model.said:
                    model.is_settled(value)
                    model.said = said
            case "crash":
                model.tokens.pop(worker, None)
            case "resolve":
                try:
                    row = await store.effects.resolve(effect, state=value, outcome="said")
                except BackstayError:
                    continue
                model.said = None
                if model.settled is None:
                    assert model.holder is None or clock.now >= model.lease
                    model.is_settled(value)
                    model.sent, model.closed = row.send, value is EffectState.NOT_SENT
                assert row.state is (model.settled or value)
            case "wait":
                clock.now += value
