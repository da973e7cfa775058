"""Dashboards: made by code, as committed, and held to the rules that Grafana's dashboard linter has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest

from quietus.metrics import FAMILIES
from tests.deploy.tooling import ROOT

FOLDER = ROOT / "dashboards" / "json"
BOARDS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
pytestmark = pytest.mark.parametrize("name", BOARDS)


def shown(name: str) -> list[dict[str, Any]]:
    return [panel for panel in BOARDS[name]["panels"] if panel["type"] != "row"]


def queries(name: str) -> Iterator[tuple[str, str]]:
    for panel in shown(name):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def test_it_is_what_the_code_makes(name: str) -> None:
    from dashboards.build import rendered

    assert (FOLDER / f"{name}.json").read_text() == rendered()[f"{name}.json"], "run: make chart"


def test_the_chart_has_the_same(name: str) -> None:
    from scripts.chart import files

    for copy, source in files().items():
        assert copy.read_bytes() == source.read_bytes(), "run: make chart"
    assert any(copy.stem == name for copy in files())


def test_variables_are_those_that_people_expect(name: str) -> None:
    variables = {each["name"]: each for each in BOARDS[name]["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance", "store"]
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    assert variables["datasource"]["label"] == "Data source"
    for key in ("job", "instance", "store"):
        each = variables[key]
        assert each["type"] == "query"
        assert each["datasource"]["uid"] == "$datasource"
        assert (each["multi"], each["includeAll"], each["allValue"]) == (True, True, ".+")
        assert each["refresh"] == 2, "not read anew when the time changes"
        inner = re.fullmatch(r"label_values\((.+), (\w+)\)", each["query"])
        assert inner is not None and inner[2] == key
        promql_parser.parse(inner[1])


def test_it_cannot_be_edited_and_has_a_stable_name(name: str) -> None:
    board = BOARDS[name]
    assert board["editable"] is False
    assert board["uid"] == name
    assert len(board["uid"]) <= 40
    assert board["schemaVersion"] >= 36
    assert board["title"].startswith("Quietus / ")
    assert board["description"]


def test_every_panel_says_what_it_shows(name: str) -> None:
    panels = shown(name)
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert len({panel["id"] for panel in BOARDS[name]["panels"]}) == len(BOARDS[name]["panels"])
    for panel in panels:
        assert panel["title"] and len(panel["description"]) > 10, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "$datasource", panel["title"]
        assert panel["targets"], panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
        places = [target["refId"] for target in panel["targets"]]
        assert len(set(places)) == len(places), panel["title"]


@pytest.mark.requirement("R201")
def test_every_query_is_promql_over_metrics_that_exist(name: str) -> None:
    asked = 0
    for title, query in queries(name):
        promql_parser.parse(query.replace("$__rate_interval", "5m"))
        for metric in re.findall(r"quietus_[a-z0-9_]+", query):
            family = re.sub(r"_(bucket|sum|count)$", "", metric) if metric not in FAMILIES else metric
            assert family in FAMILIES, f"{title}: {metric}"
            asked += 1
        for labels in re.findall(r"quietus_[a-z0-9_]+\{([^}]*)\}", query):
            assert 'job=~"$job"' in labels and 'instance=~"$instance"' in labels, title
        for label in re.findall(r"by \(([^)]*)\)", query):
            known = {"le", "job", "instance"} | {
                part for family in FAMILIES.values() for part in family.labels
            }
            assert {part.strip() for part in label.split(",")} <= known, title
    assert asked > 10


def test_counters_are_asked_for_their_growth_and_rates_fit_the_screen(name: str) -> None:
    for title, query in queries(name):
        for window in re.findall(r"\[([^\]]+)\]", query):
            assert window == "$__rate_interval", title
        bare = re.sub(r"(rate|increase)\(quietus_[a-z0-9_]+\{[^}]*\}\[[^\]]*\]\)", "", query)
        for metric in re.findall(r"quietus_[a-z0-9_]+", bare):
            assert FAMILIES[metric].kind == "gauge", f"{title}: {metric}"
