"""What operators copy: the dashboard and the alerts, evaluated by a real Prometheus over what a real worker serves."""

import asyncio
import math
import re
import subprocess
import sys
import time
from contextlib import suppress

import pytest
import yaml

from docs.browser import open_browser
from docs.dashboard.drawing import NO_DATA, Window, page_of, words
from docs.dashboard.picture import dashboard, seen
from docs.dashboard.prometheus import MONITORING, open_prometheus
from tests.cli.commands import HOUSE, at_terminal, bare
from tests.cli.test_dev import nothing_left
from tests.engine import share_images
from tests.ports import own_port
from tests.requirements import promise

DASHBOARD = dashboard()
ALERTS = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))
PANELS = {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in DASHBOARD["panels"]}
RULES = {rule["alert"]: rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]}
VARIABLES = {"$__rate_interval": "1m", "$__range": "5m"}
"""What Grafana puts in their places."""


def asked(expression):
    for name, stands_for in VARIABLES.items():
        expression = expression.replace(name, stands_for)
    assert "$" not in expression, expression
    return expression


def watched(alert):
    """The part of an alert that is compared with its threshold."""
    (parts,) = re.findall(r"^(.*) [<>] [\d.]+$", alert)
    return parts


async def sums_of(prometheus, expression):
    """Wait until an expression has a value that is a number."""
    with suppress(TimeoutError):
        async with asyncio.timeout(15):
            while not any(map(math.isfinite, await prometheus.numbers(expression))):
                await asyncio.sleep(0.5)
    return [number for number in await prometheus.numbers(expression) if math.isfinite(number)]


@promise("operations:monitoring")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_no_query_of_the_dashboard_or_the_alerts_is_empty_after_the_demo_crash(tmp_path):
    address = f"127.0.0.1:{own_port()}"
    command = (
        sys.executable,
        "-m",
        "examples.demo",
        "--crash",
        "--yes",
        "--home",
        str(share_images(tmp_path / "demo")),
    )
    environment = bare(BACKSTAY_METRICS_ADDRESS=address)
    begin = time.time()
    async with (
        open_prometheus(tmp_path / "prometheus", address) as prometheus,
        at_terminal(*command, environment=environment, folder=HOUSE) as terminal,
    ):
        assert "kill -9" in await terminal.shows("Everything stays up until you press Enter", 200)
        async with asyncio.timeout(150):
            while await prometheus.numbers('backstay_runs{outcome="completed"}') != [1]:
                await asyncio.sleep(0.5)
        shown = {(title, query): await sums_of(prometheus, asked(query)) for title in PANELS for query in PANELS[title]}
        compared = {name: await sums_of(prometheus, watched(expression)) for name, expression in RULES.items()}
        fires = {name: await prometheus.query(expression) for name, expression in RULES.items()}
        calls = await prometheus.numbers("sum by (outcome) (max_over_time(backstay_tool_calls[5m])) > 0")
        groups = (await prometheus.get("rules"))["groups"]
        drawn = await page_of(DASHBOARD, prometheus, Window(begin, time.time()))
        terminal.type("")
        await terminal.ended()
    await nothing_left(tmp_path)
    async with open_browser() as browser:
        pictured = await seen(browser, drawn)

    assert [name for name, found in shown.items() if not found] == []
    assert (pictured, NO_DATA in drawn) == (words(DASHBOARD), False)
    assert [name for name, found in compared.items() if not found] == []
    assert [name for name, found in fires.items() if found] == []
    # The mail that was under way at the crash, and those whose answers arrived.
    assert min(calls) == 1
    assert {
        rule["name"]: (rule["health"], rule.get("lastError", "")) for group in groups for rule in group["rules"]
    } == (dict.fromkeys(RULES, ("ok", "")))


@promise("deployment:monitoring")
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", str(MONITORING / "alerts.yml")),
        ("check", "config", str(MONITORING / "prometheus.yml")),
        ("test", "rules", str(HOUSE / "tests/telemetry/alerts.test.yml")),
    ],
    ids=" ".join,
)
def test_promtool_accepts_the_rules_and_each_alert_fires_where_it_should(arguments):
    done = subprocess.run(("promtool", *arguments), capture_output=True, text=True, check=False, timeout=150)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


@promise("deployment:complete")
def test_every_alert_has_a_test_and_every_metric_is_on_the_dashboard_and_in_the_documents():
    page = (HOUSE / "docs/monitoring.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(backstay_\w+)` \|", page, re.MULTILINE))
    shown = set(re.findall(r"\bbackstay_\w+", " ".join(query for queries in PANELS.values() for query in queries)))
    tested = (HOUSE / "tests/telemetry/alerts.test.yml").read_text(encoding="utf-8")

    assert listed == shown
    assert all(f"alertname: {name}" in tested for name in RULES)
