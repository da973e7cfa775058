"""Grafana's JSON of the sheets, by Grafana's own builders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as words
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
)

from dashboards.panels import SHEETS, Panel, Sheet

FOLDER = Path(__file__).resolve().parent / "json"
SOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
RELOADS = 'changes(quietus_reload_timestamp_seconds{job=~"$job", instance=~"$instance"}[1m]) > 0'
ALL = VariableOption(text="All", value="$__all", selected=True)


def rendered() -> dict[str, str]:
    """File names and what is to stand in them."""
    return {f"{sheet.uid}.json": text_of(sheet) for sheet in SHEETS}


def text_of(sheet: Sheet) -> str:
    """One dashboard as Grafana imports it."""
    board = (
        Dashboard(sheet.title)
        .uid(sheet.uid)
        .description(sheet.says)
        .tags(list(sheet.tags))
        .readonly()
        .refresh("1m")
        .time("now-6h", "now")
        .timezone("browser")
        .tooltip(1)
        .link(DashboardLink("Quietus").type(DashboardLinkType.DASHBOARDS).tags(["quietus"]).as_dropdown(True)
              .include_vars(True).keep_time(True))
        .annotation(AnnotationQuery().name("Reloads").enable(True).icon_color("blue").datasource(SOURCE)
                    .expr(RELOADS))
        .with_variable(DatasourceVariable("datasource").type("prometheus").label("Data source"))
    )  # fmt: skip
    for name, query in (
        ("job", "label_values(quietus_build_info, job)"),
        ("instance", 'label_values(quietus_build_info{job=~"$job"}, instance)'),
        ("store", 'label_values(quietus_erasures{job=~"$job", instance=~"$instance"}, store)'),
    ):
        board = board.with_variable(
            QueryVariable(name).label(name).datasource(SOURCE).query(query).include_all(True).multi(True)
            .all_value(".+").current(ALL).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        )  # fmt: skip
    number = 0
    for title, panels in sheet.rows:
        number += 1
        board = board.with_row(Row(title).id(number))
        for panel in panels:
            number += 1
            board = board.with_panel(made(panel).id(number))
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


def made(panel: Panel) -> Any:
    """One panel."""
    shown: Any = stat.Panel() if panel.kind == "number" else timeseries.Panel()
    shown = shown.title(panel.title).description(panel.says).datasource(SOURCE).unit(panel.unit)
    shown = shown.span(panel.width).height(4 if panel.kind == "number" else 8)
    if panel.red_above is not None:
        steps = [Threshold(value=None, color="green"), Threshold(value=panel.red_above + 0.5, color="red")]
        shown = shown.thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    if panel.kind == "number":
        shown = shown.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    else:
        legend = common.VizLegendOptions().display_mode(words.LegendDisplayMode.LIST).show_legend(True)
        shown = shown.legend(legend.placement(words.LegendPlacement.BOTTOM)).line_width(1).fill_opacity(5)
        shown = shown.min(0)
    for place, (query, legend_of) in enumerate(panel.queries):
        target = prometheus.Dataquery().expr(query).legend_format(legend_of).ref_id(chr(ord("A") + place))
        target = target.datasource(SOURCE)
        target = target.instant() if panel.kind == "number" else target.range().exemplar(True)
        shown = shown.with_target(target)
    return shown
