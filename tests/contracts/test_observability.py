"""The documentation, the dashboard and the alerts name exactly the existing metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import Metric

from portal.errors import PortalError, tree
from portal.observability import metrics
from portal.services.operations.reports import scraping
from tests.conftest import Portal

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Labels that Prometheus itself adds.
ADDED_LABELS = {"le", "instance", "job"}


def labels_of_counted() -> dict[str, tuple[str, set[str]]]:
    """Return the type and labels of each metric that processes count, by its name in queries."""
    found = {}
    for metric in metrics.REGISTRY._collector_to_names:
        described = metric.describe()[0]
        suffix = "_total" if described.type == "counter" else ""
        found[described.name + suffix] = (described.type, set(metric._labelnames))
    return found


@pytest.fixture
def known(portal: Portal) -> dict[str, tuple[str, set[str]]]:
    portal.add("one")
    found = labels_of_counted()
    read: Iterator[Metric] = scraping.of_database(portal.services)
    for metric in read:
        suffix = "_info" if metric.type == "info" else ""
        labels = {label for sample in metric.samples for label in sample.labels}
        found[metric.name + suffix] = ("gauge", labels)
    return found


def test_the_page_lists_every_metric_with_its_labels(
    known: dict[str, tuple[str, set[str]]],
) -> None:
    page = (DOCS / "monitoring.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(portal_\w+)` \| (\w+) \|([^|]*)\|", page, re.MULTILINE)
    listed = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert listed == known


def expressions() -> Iterator[tuple[str, str]]:
    board = json.loads((DOCS / "grafana" / "portal.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    rules = yaml.safe_load((DOCS / "alerts.yml").read_text(encoding="utf-8"))
    for rule in rules["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"]


def base_name(name: str, known: dict[str, tuple[str, set[str]]]) -> str:
    """Return the metric of a series: histograms have three series."""
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    return base if known.get(base, ("", set()))[0] == "histogram" else name


def test_dashboard_and_alerts_use_existing_metrics_and_labels(
    known: dict[str, tuple[str, set[str]]],
) -> None:
    all_expressions = list(expressions())
    assert len(all_expressions) > 30
    for title, expression in all_expressions:
        names = set(re.findall(r"\bportal_\w+", expression))
        metrics_named = {base_name(name, known) for name in names}
        assert metrics_named <= known.keys(), (title, metrics_named - known.keys())
        labels = set(ADDED_LABELS)
        for name in metrics_named:
            labels |= known[name][1]
        matched = re.findall(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)", expression)
        for group in re.findall(r"by \(([^)]*)\)", expression):
            matched += [label.strip() for label in group.split(",")]
        assert set(matched) <= labels, (title, set(matched) - labels)


def test_legends_use_labels_that_their_query_keeps() -> None:
    board = json.loads((DOCS / "grafana" / "portal.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            kept = {
                label.strip()
                for group in re.findall(r"by \(([^)]*)\)", target["expr"])
                for label in group.split(",")
            }
            used = set(re.findall(r"\{\{(.*?)\}\}", target["legendFormat"]))
            assert used <= kept, panel["title"]


def test_every_metric_is_on_the_dashboard(known: dict[str, tuple[str, set[str]]]) -> None:
    shown = " ".join(expression for _, expression in expressions())
    assert {name for name in known if name not in shown} == set()


def test_alerts_say_what_to_do() -> None:
    rules = yaml.safe_load((DOCS / "alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 8
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["action"]


def test_error_codes_are_few_and_plain_identifiers() -> None:
    codes = {error.code for error in tree(PortalError)}
    assert len(codes) <= 120
    assert all(re.fullmatch(r"[a-z0-9_]+", code) for code in codes)


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="not installed: prometheus (for promtool)"
)
def test_prometheus_accepts_the_alerts_and_the_dashboard_queries(
    tmp_path: Path,
) -> None:
    rules = [
        {"record": f"check:{number}", "expr": re.sub(r"\$__\w+", "5m", expression)}
        for number, (_, expression) in enumerate(expressions())
    ]
    queries = tmp_path / "queries.yml"
    queries.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    command = ["promtool", "check", "rules", str(DOCS / "alerts.yml"), str(queries)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
