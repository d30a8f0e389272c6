"""The picture of the dashboard shows what docs/monitoring/dashboard.json has now."""

import copy

import pytest

from docs.dashboard.drawing import Window, page_of, words
from docs.dashboard.picture import dashboard
from docs.dashboard.prometheus import Prometheus
from docs.pictures import fault_of
from tests.requirements import promise


@promise("deployment:picture")
def test_what_the_picture_of_the_dashboard_shows_is_what_its_file_has():
    assert not fault_of("dashboard", words(dashboard()))


def panel(changed):
    """A panel of lines."""
    return next(each for each in changed["panels"] if each["type"] == "timeseries")


@promise("deployment:picture")
@pytest.mark.parametrize(
    "change",
    [
        lambda changed: changed.update(title="other"),
        lambda changed: panel(changed).update(title="other"),
        lambda changed: panel(changed).update(description="other"),
        lambda changed: panel(changed)["fieldConfig"]["defaults"].update(unit="s"),
        lambda changed: panel(changed)["targets"][0].update(legendFormat="{{other}}"),
        lambda changed: panel(changed)["gridPos"].update(y=99),
        lambda changed: changed["panels"].remove(panel(changed)),
    ],
    ids=["title", "panel", "description", "unit", "legend", "place", "less"],
)
def test_a_change_of_what_the_dashboard_shows_makes_its_picture_stale(change):
    changed = copy.deepcopy(dashboard())
    change(changed)

    assert words(changed) != words(dashboard())


@promise("deployment:picture-panels")
async def test_a_panel_that_nothing_draws_is_refused():
    changed = {**dashboard(), "panels": [{**dashboard()["panels"][0], "type": "heatmap"}]}

    with pytest.raises(ValueError, match="nothing draws panels of the type heatmap"):
        await page_of(changed, Prometheus("http://127.0.0.1:1"), Window(0, 60))
