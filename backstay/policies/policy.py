"""The calls that are allowed without asking, those that people are asked about, and those that are denied."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, ValidationError

from backstay.canonical import digest_of
from backstay.errors import PolicyInvalid
from backstay.frozen import Frozen, first_faults
from backstay.policies.accepted import AcceptedLine, line_about, reaches_out
from backstay.policies.condition import Judgement
from backstay.policies.glob import matches, overlap
from backstay.policies.network import NetworkPolicy, rule_on_network
from backstay.policies.origins import origins
from backstay.policies.rule import Person, Rule, check_group, clip_line, explain
from backstay.policies.ruling import Permission, Ruling, stricter
from backstay.policies.secret_use import undeclared
from backstay.policies.sections import (
    Accepting,
    Defaults,
    Delegating,
    RevealPolicy,
    Rules,
    Scheduling,
    UndoPolicy,
    or_nothing,
)
from backstay.provenance.source import ArgumentSources
from backstay.redaction.handles import belongs_to, handles_in, provider_of
from backstay.tools.tool import Tool

Purpose = Literal["call", "undo"]


class Policy(Frozen):
    """Rule on calls: deny before ask before allow, the first rule of each that applies, then the default by Safety."""

    default: Annotated[Defaults, BeforeValidator(or_nothing)] = Defaults()
    deny: Rules = ()
    ask: Rules = ()
    allow: Rules = ()
    undo: Annotated[UndoPolicy, BeforeValidator(or_nothing)] = UndoPolicy()
    reveal: Annotated[RevealPolicy, BeforeValidator(or_nothing)] = RevealPolicy()
    groups: Annotated[dict[str, tuple[Person, ...]], BeforeValidator(or_nothing), Field(max_length=200)] = Field(
        default_factory=dict
    )
    """Persons by the name of their group, which starts with `@`."""
    repeated: Literal["ask", "allow"] = "ask"
    """Whether people are asked about a write that the run has made before with the same arguments."""
    provenance: Literal["strict", "off"] = "off"
    """strict: ask when a write goes where only others' words say: an address, account, path, URL or command."""
    network: NetworkPolicy | None = Field(default=None, exclude_if=lambda network: network is None)
    """Which hosts commands may reach unasked."""
    accepting: Accepting | None = None
    """Whose decisions may be remembered as lines that later runs obey."""
    scheduling: Scheduling | None = Field(default=None, exclude_if=lambda scheduling: scheduling is None)
    """Whose schedules and triggers start runs."""
    delegation: Delegating | None = Field(default=None, exclude_if=lambda delegation: delegation is None)
    """How many sub-runs runs may have, and how deep."""
    plans: Permission | None = None
    """Whether people are asked about a model's plan as a whole; only the operator's `allow` counts."""
    floor: "Policy | None" = None
    """The operator's policy below a task's own: both apply, the stricter wins."""

    @classmethod
    def admit(cls, data: Any) -> Self:
        """Validate a policy from outside; raises PolicyInvalid naming field, value and fix."""
        given = {} if data is None else data
        if isinstance(given, dict) and given.get("floor") is not None:
            raise PolicyInvalid("floor: unknown field; remove it")
        try:
            policy = cls.model_validate(given, extra="forbid")
        except ValidationError as error:
            raise PolicyInvalid(first_faults(error, lambda fault: explain(fault, _fields_at))) from None
        policy.check()
        return policy

    @property
    def policy_hash(self) -> str:
        """Return the sha256 of the policy's canonical JSON."""
        return digest_of(self.plain())

    @property
    def layers(self) -> "tuple[Policy, ...]":
        """Return this policy and each policy below it."""
        return (self, *(() if self.floor is None else self.floor.layers))

    @property
    def operators(self) -> "Policy":
        """Return the policy below all those of tasks."""
        return self.layers[-1]

    @property
    def vouches_by_name(self) -> bool:
        """Return whether the answer of a person vouches for a value only when it is proven who that is."""
        return any(
            layer.provenance == "strict" or any(rule.approvers for _, rules in layer.sections() for rule in rules)
            for layer in self.layers
        )

    @property
    def looks_at_sources(self) -> bool:
        """Return whether it rules on where the arguments of a write came from."""
        return any(
            layer.provenance == "strict" or any(rule.asks_where_from for _, rules in layer.sections() for rule in rules)
            for layer in self.layers
        )

    @property
    def has_days(self) -> bool:
        """Return whether a rule of it ends on some day."""
        return any(rule.until for layer in self.layers for rule in layer.allow)

    @property
    def wants_sources(self) -> bool:
        """Return whether a rule, or a person who is asked, needs to know where the arguments of a write came from."""
        return self.looks_at_sources or any(
            layer.ask or "ask" in (layer.default.write_safe, layer.default.restricted_write) for layer in self.layers
        )

    def sections(self) -> list[tuple[str, tuple[Rule, ...]]]:
        """Return every list of rules under its name."""
        undo = self.undo
        own = [("deny", self.deny), ("ask", self.ask), ("allow", self.allow)]
        undos = [("undo.deny", undo.deny), ("undo.ask", undo.ask), ("undo.allow", undo.allow)]
        return [*own, *undos, ("reveal.deny", self.reveal.deny), ("reveal.ask", self.reveal.ask)]

    @property
    def people(self) -> frozenset[str]:
        """Return everybody whom its rules and groups name."""
        rules = [rule for _, rules in self.sections() for rule in rules]
        names = [name for rule in rules for name in (*rule.approvers, *rule.escalate_to)]
        accepting = () if self.accepting is None else self.accepting.approvers
        scheduling = () if self.scheduling is None else self.scheduling.people
        return frozenset(self.resolved((*names, *accepting, *scheduling, *self.groups)))

    @property
    def delegating(self) -> Delegating:
        """Return how far sub-runs may go: of each limit the lowest that any of the policies says."""
        said = [layer.delegation for layer in self.layers if layer.delegation is not None]
        if not said:
            return Delegating()
        depth, runs = min(each.max_depth for each in said), min(each.max_runs for each in said)
        if self.operators.delegation is not None:
            return Delegating(max_depth=depth, max_runs=runs)
        usual = Delegating()
        return Delegating(max_depth=min(depth, usual.max_depth), max_runs=min(runs, usual.max_runs))

    def lets_schedule(self, person: str) -> bool:
        """Return whether the schedules and triggers of a person start runs."""
        return self.scheduling is None or person in self.resolved(self.scheduling.people)

    def persons(self, rule: Rule | Accepting) -> tuple[str, ...]:
        """Return who may decide what the rule asks, groups resolved, sorted; empty means anyone."""
        return self.resolved(rule.approvers)

    def resolved(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the persons that names stand for, groups resolved, sorted."""
        named = (self.groups.get(name, ()) if name.startswith("@") else (name,) for name in names)
        return tuple(sorted({person for persons in named for person in persons}))

    def tightened_by(self, data: dict[str, Any] | None) -> "Policy":
        """Return this policy with a task's own over it, which can only make it stricter.

        Fields that the task's policy leaves out change nothing. Raises PolicyInvalid, also when both policies could ask
        about a call and too few people may approve it under both.
        """
        if data is None:
            return self
        own = Policy.admit(_without_opinions(data, self.groups))
        if own.accepting is not None:
            raise PolicyInvalid("accepting: only the operator's policy says whose decisions are remembered; remove it")
        if own.scheduling is not None:
            raise PolicyInvalid("scheduling: only the operator's policy says whose schedules start runs; remove it")
        _check_approvers(self, own)
        return own.model_copy(update={"floor": self})

    def check(self) -> None:
        """Raise PolicyInvalid when rules and groups do not fit together."""
        for name, persons in self.groups.items():
            check_group(name, persons)
        for section, rules in self.sections():
            for index, rule in enumerate(rules):
                rule.check(f"{section}[{index}]", section)
                self._check_rule(f"{section}[{index}]", rule)
        if self.accepting is not None:
            self._check_people("accepting", self.accepting)
        for name in () if self.scheduling is None else self.scheduling.people:
            self._check_name("scheduling.people", name)

    def _check_rule(self, where: str, rule: Rule) -> None:
        self._check_times(where, rule)
        if where.startswith("reveal.") and (
            rule.when or rule.unless or rule.timeout or rule.remind_after or rule.on_expiry != "reject"
        ):
            raise PolicyInvalid(
                f"{where}: {rule.tool} has when, unless, timeout, remind_after or on_expiry, but there is neither a "
                "call nor a request; remove them"
            )
        self._check_people(where, rule)

    def _check_times(self, where: str, rule: Rule) -> None:
        if rule.escalate_to and (rule.on_expiry != "escalate" or rule.timeout is None):
            raise PolicyInvalid(
                f"{where}.escalate_to: {rule.tool} never escalates; add timeout and on_expiry: escalate, or remove it"
            )
        if rule.remind_after is not None and rule.timeout is not None and rule.remind_after >= rule.timeout:
            raise PolicyInvalid(
                f"{where}.remind_after: {rule.tool} expires after {rule.timeout:g} s, before anybody is reminded "
                f"({rule.remind_after:g} s); make it shorter"
            )
        for name in rule.escalate_to:
            self._check_name(f"{where}.escalate_to", name)

    def _check_name(self, where: str, name: str) -> None:
        if not name.strip() or (name.startswith("@") and name not in self.groups):
            raise PolicyInvalid(f"{where}: unknown group {name!r}; add it to groups or correct its name")

    def _check_people(self, where: str, rule: Rule | Accepting) -> None:
        for name in rule.approvers:
            self._check_name(f"{where}.approvers", name)
        persons = self.persons(rule)
        if persons and rule.quorum > len(persons):
            raise PolicyInvalid(
                f"{where}.quorum: {rule.quorum} of {len(persons)} approvers ({', '.join(persons)}) can never agree; "
                f"lower it to at most {len(persons)} or name more approvers"
            )


_SECTIONS: dict[Any, type[Frozen]] = {
    "default": Defaults,
    "undo": UndoPolicy,
    "reveal": RevealPolicy,
    "accepting": Accepting,
    "scheduling": Scheduling,
    "delegation": Delegating,
    "network": NetworkPolicy,
    **dict.fromkeys(("deny", "ask", "allow"), Rule),
}


def _fields_at(path: Sequence[int | str]) -> list[str]:
    """Return the fields that may be written at a place of a policy."""
    model = next((_SECTIONS[part] for part in reversed(path) if part in _SECTIONS), Policy)
    return [name for name in model.model_fields if name != "floor"]


REPEATED = "repeated: "
"""How the rule begins by which people are asked about a write that was made before."""


def rule_on_repeat(policy: Policy, ruling: Ruling, earlier: str) -> Ruling:
    """Rule on a write that the run has made before; `earlier` says when, and what came of it."""
    if ruling.verdict == "deny" or all(layer.repeated == "allow" for layer in policy.layers):
        return ruling
    return ruling.model_copy(update={"verdict": "ask", "rule": clip_line(f"{REPEATED}{earlier}; {ruling.rule}")})


def forbids(policy: Policy, tool: Tool) -> str | None:
    """Return the rule that denies every call of a tool whatever its arguments, or None when some call may pass."""
    for index, candidate in enumerate(policy.deny):
        if candidate == candidate.bare and any(matches(candidate.tool, name) for name in (tool.name, *tool.calls)):
            return f"deny[{index}]: {candidate.line}"
    if policy.default.of(tool.safety) == "deny" and not any(
        matches(candidate.tool, tool.name) for candidate in (*policy.ask, *policy.allow)
    ):
        return f"default: {tool.safety.value} is denied"
    return None if policy.floor is None else forbids(policy.floor, tool)


def rule(
    policy: Policy,
    tool: Tool,
    arguments: dict[str, Any],
    *,
    purpose: Purpose = "call",
    sources: ArgumentSources | None = None,
    lines: Sequence[AcceptedLine] = (),
    today: str = "",
) -> Ruling:
    """Rule on a call by a policy and the policy below it; the stricter wins.

    `lines` replace the default of the policy below: where a rule, provenance or a secret asks, they say nothing.
    `sources` says where the arguments came from, where that is known; `today`, such as 2027-02-28, which rules have
    ended.
    """
    found = _ruled(policy, _Call(tool, arguments, sources, lines, today), purpose=purpose)
    found = reduce(stricter, on_its_way(policy, tool, purpose=purpose), found)
    reached = rule_on_network([layer.network for layer in policy.layers], tool, arguments, lines)
    found = found if reached is None else stricter(reached, found)
    handles = handles_in(arguments)
    if not handles:
        return found
    foreign = sorted({provider_of(h) for h in handles if not belongs_to(h, tool.provider)})
    if foreign:
        line = f"secret use: a secret of {', '.join(foreign)} would be sent to {tool.provider}"
        found = stricter(Ruling(verdict="ask", rule=clip_line(line)), found)
    if purpose == "call" and (taking := undeclared(tool, arguments)):
        line = f"secret use: {', '.join(taking)} would take a secret and is not one of the tool's secret_arguments"
        found = stricter(Ruling(verdict="ask", rule=clip_line(line)), found)
    return found


class _Call(NamedTuple):
    """Hold what a call is ruled on by."""

    tool: Tool
    arguments: dict[str, Any]
    sources: ArgumentSources | None
    lines: Sequence[AcceptedLine]
    today: str


def _ruled(policy: Policy, call: _Call, *, purpose: Purpose) -> Ruling:
    found = _own(policy, call, purpose=purpose)
    if purpose == "call" and policy.provenance == "strict" and (theirs := _by_provenance(call)) is not None:
        found = stricter(found, theirs)
    if policy.floor is None:
        return found
    found = found.model_copy(update={"rule": f"task's own {found.rule}"})
    return stricter(_ruled(policy.floor, call, purpose=purpose), found)


def on_its_way(policy: Policy, tool: Tool, *, purpose: Purpose) -> Iterator[Ruling]:
    """Yield what rules about other tools say of a tool that calls them, or that takes their effect back.

    With which arguments it calls them, nobody knows yet. Rules about undo can name either of the two tools.
    Only rules that deny or ask count: words about what is allowed, and what is usual, concern the tool that is called
    first.
    """
    undone = (tool.undoes,) if purpose == "undo" and tool.undoes else ()
    for layer, name in ((layer, name) for layer in policy.layers for name in (*tool.calls, *undone)):
        section, prefix = (layer.undo, "undo.") if purpose == "undo" else (layer, "")
        for rules, verdict in ((section.deny, "deny"), (section.ask, "ask")):
            for index, candidate in enumerate(rules):
                is_open = candidate.when is not None or candidate.unless is not None
                if not matches(candidate.tool, name) or (matches(candidate.tool, tool.name) and not is_open):
                    continue
                does = "undoes" if name in undone else "calls"
                line = clip_line(f"{prefix}{verdict}[{index}]: {candidate.line} ({tool.name} {does} {name})")
                if verdict == "ask":
                    yield _asks(layer, candidate, line)
                else:
                    yield Ruling(verdict="ask" if is_open else "deny", rule=line)


def _by_provenance(call: _Call) -> Ruling | None:
    """Return what the strict preset says of a call; None when it has nothing against it."""
    if not call.tool.effectful or (call.sources is not None and not call.sources.foreign):
        return None
    if call.sources is None:
        return Ruling(verdict="ask", rule="provenance: nobody knows where the arguments came from")
    theirs = call.sources.foreign
    return Ruling(verdict="ask", rule=clip_line(f"provenance: {origins(call.sources, theirs)}"), minds=theirs)


def _own(policy: Policy, call: _Call, *, purpose: Purpose) -> Ruling:
    """Rule by one policy alone."""
    section = policy.undo if purpose == "undo" else policy
    prefix = "undo." if purpose == "undo" else ""
    asking: list[Ruling] = []
    for _, line, outcome in _applying(section.deny, f"{prefix}deny", call):
        if not outcome.is_open or outcome is Judgement.MASKED:
            return Ruling(verdict="deny", rule=line.replace("(asks: ", "(denies: "))
        asking.append(Ruling(verdict="ask", rule=line, unseen=True))
    for found, line, outcome in _applying(section.ask, f"{prefix}ask", call):
        asking.append(_asks(policy, found, line, unseen=outcome.is_open))
        # A rule that applies only out of caution must not hide a stricter rule that truly applies.
        if outcome is Judgement.HOLDS:
            break
    if asking:
        return reduce(stricter, asking)
    for _, line, outcome in _applying(section.allow, f"{prefix}allow", call, allows=True):
        if outcome.is_open:
            ruling = Ruling(verdict="ask", rule=line, unseen=True)
            # Whether the rule applies is not known, so the call is judged as if it did not.
            is_masked = outcome is Judgement.MASKED
            return stricter(ruling, _by_default(policy, call, purpose)) if is_masked else ruling
        if outcome is Judgement.HOLDS:
            return Ruling(verdict="allow", rule=line)
    return _by_default(policy, call, purpose)


def _applying(
    rules: tuple[Rule, ...], section: str, call: _Call, *, allows: bool = False
) -> Iterator[tuple[Rule, str, Judgement]]:
    """Yield the rules that apply or may apply, each with a line that people read."""
    for index, found in enumerate(rules):
        if found.is_over(call.today):
            continue
        outcome, path = found.applies(call.tool.name, call.arguments, allows=allows, sources=call.sources)
        line = f"{section}[{index}]: {found.line}"
        if outcome.is_open:
            line += f" (asks: {path} is a secret, a stored value or a reference, which the rule cannot look into)"
        if outcome is not Judgement.FAILS:
            yield found, clip_line(line) if outcome.is_open else line, outcome


_SAID = {"allow": "is allowed", "ask": "asks", "deny": "is denied"}


def _by_default(policy: Policy, call: _Call, purpose: Purpose) -> Ruling:
    if purpose == "undo":
        return Ruling(verdict=policy.undo.default, rule=f"undo.default: {policy.undo.default}")
    safety = call.tool.safety
    permission = policy.default.of(safety)
    by_class = Ruling(verdict=permission, rule=f"default: {safety.value} {_SAID[permission]}")
    if not reaches_out(call.tool) or (call.sources is not None and not call.sources.reaching):
        return _by_line(policy, call, by_class)
    permission = policy.default.read_only_egress
    why = "" if call.sources is None else f" ({origins(call.sources, call.sources.reaching)})"
    line = clip_line(f"default: read_only_egress {_SAID[permission]}{why}")
    minds = () if call.sources is None else call.sources.reaching
    return _by_line(policy, call, stricter(Ruling(verdict=permission, rule=line, minds=minds), by_class))


def _by_line(policy: Policy, call: _Call, default: Ruling) -> Ruling:
    """Return what an accepted line says in place of a default that does not deny.

    A default of the task's own is not a default of the policy that people accept lines for.
    """
    if not call.lines or policy.floor is not None or default.verdict == "deny":
        return default
    line = line_about(call.lines, call.tool, call.arguments, call.sources)
    if line is None or line.verdict == default.verdict:
        return default
    return Ruling(verdict=line.verdict, rule=line.words, line=line.id)


def _asks(policy: Policy, candidate: Rule, line: str, *, unseen: bool = False) -> Ruling:
    return Ruling(
        verdict="ask",
        rule=line,
        unseen=unseen,
        approvers=policy.persons(candidate),
        quorum=candidate.quorum,
        timeout_s=candidate.timeout,
        on_expiry=candidate.on_expiry,
        no_self_approval=candidate.no_self_approval,
        remind_after_s=candidate.remind_after,
        escalate_to=policy.resolved(candidate.escalate_to),
    )


def _without_opinions(data: Any, groups: dict[str, tuple[str, ...]]) -> Any:
    """Allow what a task leaves out, which tightens nothing, and add the operator's groups."""
    if not isinstance(data, dict):
        return data
    default, undo, own_groups = (data.get(key) or {} for key in ("default", "undo", "groups"))
    filled = {"repeated": "allow"} | data
    if isinstance(default, dict):
        filled["default"] = dict.fromkeys(Defaults.model_fields, "allow") | default
    if isinstance(undo, dict):
        filled["undo"] = {"default": "allow"} | undo
    if isinstance(own_groups, dict):
        taken = sorted(map(str, own_groups.keys() & groups.keys()))
        if taken:
            raise PolicyInvalid(f"groups.{taken[0]}: the operator's policy defines this group; choose another name")
        filled["groups"] = own_groups | groups
    return filled


def _check_approvers(floor: Policy, own: Policy) -> None:
    """Refuse a task's policy if two rules could ask about one call and no people could satisfy both."""
    pairs = (("ask", floor.ask, own.ask), ("undo.ask", floor.undo.ask, own.undo.ask))
    for section, theirs, ours in pairs:
        for index, mine in enumerate(ours):
            for other in theirs:
                _check_pair(f"{section}[{index}]", (own.persons(mine), mine), (floor.persons(other), other))


def _check_pair(where: str, mine: tuple[tuple[str, ...], Rule], other: tuple[tuple[str, ...], Rule]) -> None:
    (our_persons, our_rule), (their_persons, their_rule) = mine, other
    if not (our_persons or their_persons) or not overlap(our_rule.tool, their_rule.tool):
        return
    both = set(our_persons) & set(their_persons) if our_persons and their_persons else {*our_persons, *their_persons}
    quorum = max(our_rule.quorum, their_rule.quorum)
    if quorum > len(both):
        raise PolicyInvalid(
            f"{where}.approvers: {our_rule.tool} also falls under the operator's rule for {their_rule.tool}, and only "
            f"{len(both)} of the {quorum} persons needed may decide under both; name approvers of that rule or none"
        )
