"""The menu and its bodies are one list: what workflows may order is what a worker does."""

import inspect
from typing import Any, cast, get_type_hints

from temporalio import activity, workflow

import workflows
from activities.programs.programs import SandboxResources, sandbox_activities
from activities.registry import run_activities
from activities.resources import Resources
from backstay.calls import MENU
from backstay.frozen import Frozen
from backstay.requests import OfRun
from tests.requirements import promise
from workflows.dispatch.activity_calls import name_of
from workflows.dispatch.options import TABLE


class Unopened:
    """Stands for every resource: only the signatures of the bodies are looked at."""

    def __getattr__(self, name: str) -> "Unopened":
        return self

    def __truediv__(self, name: str) -> "Unopened":
        return self

    def __call__(self) -> tuple[()]:
        return ()


def bound() -> list[Any]:
    """The bodies of both roles, in the order of the menu."""
    found = [*run_activities(cast("Resources", Unopened())), *sandbox_activities(cast("SandboxResources", Unopened()))]
    order = [temporal_name(entry) for entry in MENU]
    return sorted(found, key=lambda match: order.index(temporal_name(match)))


def temporal_name(call: Any) -> str | None:
    definition = activity._Definition.from_callable(call)
    return definition.name if definition else None


def shape(call: Any) -> tuple[list[Any], Any]:
    """Types of the arguments and of the answer, without `self`."""
    hints = get_type_hints(call)
    return [hints[name] for name in inspect.signature(call).parameters if name != "self"], hints["return"]


@promise("layout:menu")
def test_every_entry_has_one_body_of_the_same_name_in_the_same_order():
    menu = [temporal_name(entry) for entry in MENU]

    assert [temporal_name(body) for body in bound()] == menu
    assert len(set(menu)) == len(menu)
    assert None not in menu


@promise("layout:menu")
def test_every_body_takes_and_returns_what_the_menu_says():
    assert [shape(body) for body in bound()] == [shape(entry) for entry in MENU]


@promise("layout:menu")
def test_every_body_is_a_coroutine_method_bound_to_its_resources():
    assert [body for body in bound() if not inspect.iscoroutinefunction(body) or not inspect.ismethod(body)] == []


@promise("layout:menu-entries")
def test_an_entry_takes_one_noun_that_names_its_run():
    for entry in MENU:
        arguments, answer = shape(entry)
        assert len(arguments) == 1, entry
        assert issubclass(arguments[0], OfRun), entry
        assert answer is int or issubclass(answer, Frozen), entry


@promise("layout:menu-entries")
def test_an_entry_has_no_body_of_its_own_and_promises_something():
    for entry in MENU:
        assert inspect.getsource(entry).rstrip().endswith("raise NotImplementedError"), entry
        assert inspect.getdoc(entry), entry


@promise("layout:options")
def test_the_table_of_timeouts_has_one_row_for_each_entry_and_no_other():
    assert sorted(TABLE) == sorted(name_of(entry) for entry in MENU)


@promise("layout:workflows")
def test_the_workflows_are_the_ones_that_other_programs_start_by_name():
    names = [workflow._Definition.must_from_class(found).name for found in workflows.WORKFLOWS]

    assert names == ["RunTask", "UndoRun", "ReadRun", "StartRun", "JobLane"]
