"""Begin a run: resolve once what must not be re-read later, then search the catalog once."""

from temporalio import workflow

from backstay import calls
from backstay.budgets.budget import MICRO, Ledger
from backstay.shown import one_line
from backstay.task.context import ContextItem
from workflows.run_context import RunContext

FIRST_SEARCH_LIMIT = 40
FINALIZE_SHARE = 4
"""At most a quarter of the ceiling is kept back for the closing summary."""


async def open_context(context: RunContext) -> None:
    """Resolve profile, prices, policy, catalog, store and prompt, and prepare the ledger."""
    state = context.state
    context.record("run.started", one_line(state.task.text or "plan", 200)[0], user_id=state.task.user_id)
    ask = calls.OpenRun(
        run=state.run,
        task=state.task,
        at=workflow.now().isoformat(timespec="milliseconds"),
        workflow_run_id=workflow.info().run_id,
    )
    opened = await context.activities.execute(calls.open_run, ask, summary="open the run")
    state.opened, state.context, state.catalog = opened, opened.context, opened.catalog
    ceiling = state.budget.max_llm_cost_usd
    micro = None if ceiling is None else round(ceiling * MICRO)
    finalize = (
        0
        if micro is None or state.budget.on_exhausted != "finalize"
        else min(opened.finalize_micro, micro // FINALIZE_SHARE)
    )
    state.ledger = Ledger(ceiling=micro, finalize=finalize)
    context.changed()


async def search(
    context: RunContext, query: str, *, limit: int, detail_level: str = "summary", call_id: str | None = None
) -> None:
    """Search the catalog; what is found becomes visible to the model at its next step."""
    state = context.state
    shown = one_line(query, 60)[0]
    event = context.record("search.run", f"searched tools: {shown}", written=True)
    ask = calls.FindTools(
        run=state.run,
        user_id=state.task.user_id,
        query=query[:2000],
        limit=limit,
        event=event.n,
        step=state.usage.steps,
    )
    if detail_level == "full":
        ask = ask.model_copy(update={"detail_level": detail_level})
    found = await context.activities.execute(calls.search_tools, ask, summary=f"search tools: {shown}")
    state.count_free_call()
    state.catalog = found.catalog
    item = ContextItem(kind="tools", ref=found.ref)
    state.append.append(item if call_id is None else item.model_copy(update={"call_id": call_id}))
