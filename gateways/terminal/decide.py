"""The commands of people who decide: approve, reject, answer, reveal; and sign, for gateways."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.proof import LONGEST_LIFE, START
from backstay.approvals.verdicts import verdict_words
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from gateways.terminal.asking.deciding import decided_by_name, form_of
from gateways.terminal.asking.form import fields_from
from gateways.terminal.flags import (
    ArgsDigest,
    Asking,
    By,
    Comment,
    Output,
    Remember,
    RememberArguments,
    Request,
    Workflow,
    duration,
    json_object,
)
from gateways.terminal.render import remembered_lines
from gateways.terminal.session import account_name, find, open_request, require_store, session, session_of, silence_logs
from gateways.terminal.terminal import Terminal

PlanOption = Annotated[
    Literal["approve_all", "approve_per_step", "dry_run_only"] | None,
    Parameter(help="Of a plan: how it is approved; approve_per_step by itself where --reject-step is given."),
]
NoProcesses = Annotated[bool, Parameter(negative="", help="Of a plan: let it start no processes.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StepLimits:
    """Give each step of a plan less than it would have."""

    step_timeout: Annotated[float | None, Parameter(help="Of a plan: the most seconds that each step may take.")] = None
    step_memory: Annotated[
        int | None, Parameter(help="Of a plan: the most megabytes of memory for each step in the workspace.")
    ] = None
    step_cpu: Annotated[
        int | None, Parameter(help="Of a plan: the most seconds of processor time for each step in the workspace.")
    ] = None
    step_artifacts: Annotated[
        int | None, Parameter(help="Of a plan: the most megabytes that each step may write to the workspace.")
    ] = None

    @property
    def given(self) -> dict[str, float]:
        """Return what was given, by its name in the decision."""
        workspace = {"memory_mb": self.step_memory, "cpu_s": self.step_cpu, "artifacts_mb": self.step_artifacts}
        given = {"timeout_s": self.step_timeout, **workspace}
        return {field: most for field, most in given.items() if most is not None}


async def approve(
    workflow: Asking,
    request: Request,
    *,
    by: By = None,
    args_digest: ArgsDigest = None,
    calls: str | None = None,
    remember: Remember = None,
    remember_arguments: RememberArguments = "these",
    option: PlanOption = None,
    reject_step: list[int] | None = None,
    no_processes: NoProcesses = False,
    less: StepLimits | None = None,
    plan_id: str | None = None,
    comment: Comment = "",
) -> None:
    """Approve a request.

    Parameters
    ----------
    calls
        Verdicts by index as JSON, such as '{"1": {"verdict": "reject"}}'; all other calls are approved. With a call
        that is changed, name every call: otherwise all of them are asked about again, with the change.
    reject_step
        Of a plan: leave this step out, and what needs its result; give it once for each.
    plan_id
        Of a plan: refuse the decision when the request is about another one.
    """
    if reject_step and calls:
        raise DecisionInvalid("--reject-step: not beside --calls; name the step there, or leave --calls out")
    plan = {"option": option, "plan_id": plan_id, "no_processes": no_processes, "left_out": reject_step or []}
    entered: dict[str, Any] = {"remember": remember, "remember_arguments": remember_arguments, "comment": comment}
    entered |= plan | {"limits": {} if less is None else less.given}
    if calls is not None:
        entered["calls"] = json_object(calls, "--calls", '{"1": {"verdict": "reject"}}')
    await _decide(workflow, request, "approve", by, args_digest, **entered)


async def reject(
    workflow: Asking,
    request: Request,
    *,
    by: By = None,
    args_digest: ArgsDigest = None,
    stop: bool = False,
    never: bool = False,
    remember_arguments: RememberArguments = "these",
    comment: Comment = "",
) -> None:
    """Reject a request; the model reads the comment and may continue.

    Parameters
    ----------
    stop
        End the run and undo what it did.
    never
        Deny such calls from now on, in every run of the same user.
    """
    entered: dict[str, Any] = {"comment": comment, "remember_arguments": remember_arguments}
    entered["remember"] = "never" if never else None
    await _decide(workflow, request, "reject_stop" if stop else "reject", by, args_digest, **entered)


async def answer(
    workflow: Asking,
    request: Request,
    *,
    answer: str | None = None,
    field: list[str] | None = None,
    verdict: Literal["happened", "did_not_happen", "retry"] | None = None,
    by: By = None,
    args_digest: ArgsDigest = None,
    comment: Comment = "",
) -> None:
    """Answer a question, or report the outcome of a call.

    Parameters
    ----------
    answer
        JSON; anything else is taken as text, and where the question has no form, so are numbers, true, false and null.
    field
        One field of a form, as name=value; give it once for each.
    verdict
        For a call whose outcome is unknown, or for a fault that lasts.
    """
    if [answer, field, verdict].count(None) != 2:
        raise DecisionInvalid("--answer, --field, --verdict: give exactly one of them")
    whole = {} if answer is None else {"answer": answer}
    await _decide(workflow, request, verdict or "answer", by, args_digest, given=field, comment=comment, **whole)


async def reveal(
    workflow: Workflow,
    handle: str,
    *,
    by: By = None,
    proof: str | None = None,
    output: Output = "text",
) -> None:
    """Show the secret behind a handle to a person who may see it, and record that they were shown it.

    Parameters
    ----------
    handle
        As it is in an answer of the run, with or without its brackets.
    proof
        Who asks, signed elsewhere for `reveal`; made here when BACKSTAY_APPROVER_KEY is set.
    """
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    silence_logs(settings)
    async with session_of(workflow, settings) as run:
        secret = await run.reveal(handle, by=by or account_name(), proof=proof)
    terminal.results(output, {"handle": handle, "secret": secret}, secret.splitlines())


async def _decide(
    workflow: str,
    request_id: str,
    choice: str,
    by: str | None,
    args_digest: str | None,
    *,
    given: list[str] | None = None,
    **entered: Any,
) -> None:
    async with session_of(workflow, to_decide=True) as run:
        if given is not None:
            entered["fields"] = fields_from(form_of(await open_request(run, request_id)), given)
        answered = await decided_by_name(run, request_id, by or account_name(), args_digest, choice, **entered)
    from people.decide.deciding import ASKED_AGAIN, state_words

    terminal = Terminal()
    which = f" of {run.id}" if workflow == "last" else ""
    state = state_words(answered)
    terminal.say(f"{state}: {verdict_words(answered.get('verdict'))} {answered.get('request_id')}{which}", "green")
    if answered.get("asked_again"):
        terminal.say(ASKED_AGAIN, "yellow")
    for line in answered.get("remembered", ()):
        for said, style in remembered_lines(line):
            terminal.say(said, style)


async def sign(
    workflow: Workflow,
    update: Literal["decide", "approval", "top_up", "undo", "pause", "resume", "message", "UndoRun", "start", "reveal"],
    payload: str,
    *,
    valid_for: str = "5m",
) -> None:
    """Print a payload with a proof of who decides, made with BACKSTAY_APPROVER_KEY.

    The proof is valid once, for this run, this update and, for a decision, the request as it is shown now.

    Parameters
    ----------
    update
        What the payload is for: an update of the run, the signal `approval`, the workflow `UndoRun`, the `start` of a
        run under this id, or `reveal` for a person who wants to be shown a secret.
    payload
        The JSON that will be sent, such as '{"request_id": "r1", "verdict": "approve", "by": "ana@example.com"}'.
    valid_for
        How long the proof is valid, at most 24h.
    """
    data = json_object(payload, "PAYLOAD", '{"request_id": "r1", "verdict": "approve", "by": "ana@example.com"}')
    life_s = duration(valid_for, "--valid-for")
    if life_s > LONGEST_LIFE:
        raise SettingsInvalid(f"--valid-for: {valid_for} is longer than 24h; a proof is valid for a day at most")
    async with session() as backstay:
        if update == START:
            said = backstay.sign_start(workflow, data, life_s=life_s)
        else:
            said = await (await find(backstay, workflow)).sign(update, data, life_s=life_s)
    Terminal().result_json(said)
