"""The paper's values stand next to what they are values of; series without a value and legends hide nothing."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.cli import main
from buddysim.figures import cdma_fig13, cswap_fig6
from buddysim.figures.fig11 import COLUMNS
from buddysim.figures.shared import study_style
from buddysim.papers.buddy.buddy_study import paper_names
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.cswap.iterations import SOURCES
from buddysim.papers.cswap.paper_networks import CASES
from buddysim.papers.cswap.paper_networks import NETWORKS as CSWAP_NETWORKS


def test_cdma_fig13_has_the_papers_mean_gain_over_the_mean() -> None:
    performance = {scheme: 0.5 + number / 20 for number, scheme in enumerate(cdma_fig13.SCHEMES)}
    rows = [
        {"machine": machine, "network": network, "scheme": scheme, "performance": value}
        for machine in cdma_fig13.MACHINES
        for network in NETWORKS
        for scheme, value in performance.items()
    ]
    figure = cdma_fig13.draw(rows)
    for panel, gain in zip(figure.axes, (0.32, 0.53), strict=True):
        assert panel.get_xticklabels()[-1].get_text() == "mean"
        ((x, height),) = panel.collections[0].get_offsets()
        assert height == pytest.approx(performance["vdnn-all-p"] * (1 + gain))
        assert abs(x - len(NETWORKS)) < 0.4
        assert f"paper: {100 * gain:.0f} % on average" in panel.get_title(loc="left")


def test_cswap_fig6_names_the_network_without_bars_and_hides_none() -> None:
    rows = [
        {"panel": case.panel, "codec_times": source, "scheme": scheme, "network": label, "throughput": 1.5}
        for case in CASES
        for source in SOURCES
        for scheme in ("vdnn", "cswap", "cswap-static")
        for label in CSWAP_NETWORKS
        if (case.panel, label) != ("6d", "Plain20")
    ]
    figure = cswap_fig6.draw(rows)
    figure.draw_without_rendering()
    texts = {panel.get_title(loc="left")[:2]: [text.get_text() for text in panel.texts] for panel in figure.axes}
    assert texts["6d"] == ["does not train"]
    assert texts["6a"] == []
    legends = [(panel, panel.get_legend()) for panel in figure.axes if panel.get_legend() is not None]
    for panel, legend in legends:
        assert legend.get_window_extent().y0 >= panel.get_window_extent().y1 - 1


class Study:
    """A store with results of some programs."""

    def require_rows(self, *_: Any) -> None:
        pass

    def missing_text(self) -> str:
        return ""


def test_a_mean_of_some_programs_stands_next_to_no_mean_of_all() -> None:
    column = COLUMNS.index("paper_performance")
    means = [(label, group, "150 GB/s", 1.0, 1.0, 0.9) for group, label in study_style.MEANS.items()]
    means.append((study_style.MEAN_OF_ALL, "all", "150 GB/s", 1.0, 1.0, 0.9))
    every = [(name, "HPC", "150 GB/s", 1.0, 1.0, 0.8) for name in paper_names()]
    for programs, known in ((every, 0.9), (every[:1], None)):
        table = study_style.make_table(Study(), "fig11", COLUMNS, [*programs, *means])  # type: ignore[arg-type]
        assert [row[column] for row in table.rows] == [*(row[column] for row in programs), known, known, known]


def test_plot_lists_figures_by_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot"]) == 0
    paper, papers = "", {}
    for line in capsys.readouterr().out.splitlines():
        name, _, rest = line.partition("  ")
        if rest.strip() == "description":
            paper = name
        elif name:
            papers[name] = paper
    assert {papers[name] for name in papers if name.startswith("fig")} == {"Buddy Compression"}
    assert papers["vdnn-fig1"] == "vDNN"
    assert papers["cswap-host-rate"] == "CSWAP"
    assert papers["sweep"] == "figure"
