"""Buddy Compression, Fig. 7: ratio and buddy accesses by target policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.buddy_study import paper_names
from buddysim.papers.buddy.digitized_figures import POLICIES, figures
from buddysim.papers.buddy.means import arithmetic, geometric
from buddysim.papers.buddy.target_numbers import targets
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 7: compression ratio and overflow by target policy"
ORDER = 109
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
_SHORT = {"naive": "naive", "per_alloc": "per allocation", "final": "final"}
COLUMNS = (
    "workload", "group", "policy", "ratio", "overflow_fraction", "buddy_access_fraction", "same_input_ratio",
    "same_input_overflow_fraction", "paper_ratio", "paper_buddy_access_fraction",
)  # fmt: skip


def data(source: ResultSource) -> FigureTable:
    """Return a row for each workload and policy, then the means: geometric for ratios, arithmetic for fractions."""
    rows: list[tuple[Any, ...]] = []
    for group in ("HPC", "DL"):
        of_group = []
        for name in source.buddy.names(group):
            by_policy, same = targets(source.buddy, name), targets(source.buddy, name, same_input=True)
            reported = figures()["fig7_ratio_and_buddy_accesses"][paper_names()[name]]
            if by_policy is None:
                continue
            for policy in POLICIES:
                simulated = [
                    by_policy[policy][column] for column in ("ratio", "overflow_fraction", "buddy_access_fraction")
                ]
                leak = [None, None] if same is None else [same[policy]["ratio"], same[policy]["overflow_fraction"]]
                paper = (reported[f"{policy}_target"], reported[f"{policy}_buddy_frac"])
                of_group.append((name, group, policy, *simulated, *leak, *paper))
        rows += of_group + [_mean(group, policy, of_group) for policy in POLICIES if of_group]
    return study_style.make_table(source.buddy, "fig7", COLUMNS, rows)


def _mean(group: str, policy: str, rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    policy_rows = [row for row in rows if row[2] == policy]
    reported = figures()["fig7_ratio_and_buddy_accesses"][f"GMEAN_{group}"]
    columns = list(zip(*policy_rows, strict=True))
    means = [(geometric if "ratio" in COLUMNS[at] else arithmetic)(columns[at]) for at in range(3, 8)]
    return (
        study_style.MEANS[group],
        group,
        policy,
        *means,
        reported[f"{policy}_target"],
        reported[f"{policy}_buddy_frac"],
    )


def draw(table: FigureTable) -> Figure:
    figure, (above, below) = study_style.make_figure(TITLE, 2, 1, height=3.6, sharex=True)
    names = list(dict.fromkeys(row["workload"] for row in table.records()))
    labels = study_style.paper_labels(names)

    def series(column: str, factor: float = 1) -> dict[str, list[float | None]]:
        rows_by_policy = {policy: table.rows_with(policy=policy) for policy in POLICIES}
        return {
            _SHORT[policy]: [None if row[column] is None else factor * row[column] for row in rows]
            for policy, rows in rows_by_policy.items()
        }

    for axes, column, paper_column, factor in (
        (above, "ratio", "paper_ratio", 1),
        (below, "overflow_fraction", "paper_buddy_access_fraction", 100),
    ):
        positions = study_style.draw_bars(axes, labels, series(column, factor))
        for n, values in enumerate(series(paper_column, factor).values()):
            study_style.mark_reported_values(axes, positions[n], values, "paper" if n == 0 else None)
    above.axhline(1, color=style.PALE, linewidth=0.6, linestyle="--")
    above.set_ylabel("compression ratio")
    below.set_ylabel("overflow, % of entries")
    study_style.add_legend(above, 4)
    study_style.add_caption(
        figure, table,
        "Captured data values: ratio, and fraction of entries that overflow their targets, mean over ten snapshots.",
        study_style.INPUTS, "Means of ratios are geometric, of accesses arithmetic. The CSV file has the accesses of a "
        "replay, and what targets of the same input would give.", study_style.workload_counts_text(table),
    )  # fmt: skip
    return figure
