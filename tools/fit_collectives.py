"""Collectives: `python -m tools.fit_collectives convert FILE.csv | fit | errors`.

``convert`` makes the shipped rows of a table of measured collectives (columns gpu, collective, gpus, bytes, ms,
library, nccl_folder, source), ``fit`` writes the constants of links, ``errors`` the page of errors.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from buddysim.base.textfile import LARGEST_TABLE, read_csv, toml_text
from buddysim.training.collectives.constants import link_constants
from buddysim.training.collectives.errors import CollectiveErrors, collective_errors
from buddysim.training.collectives.split import LINKS
from buddysim.training.collectives.times import KINDS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "buddysim" / "training" / "collectives"

#: Links of which no timings are at hand, and the link whose constants they take, scaled by the peak rates.
ASSUMED = {
    "pcie4-peer": ("pcie5-peer", 0.5, "PCIe 4 at half of PCIe 5's rate"),
    "pcie5-through-host": ("pcie4-through-host", 2.0, "PCIe 5 at twice PCIe 4's rate"),
}


def convert(table: str) -> None:
    """Write the shipped rows: of Vidur, those of GPUs of one NVSwitch machine, once each."""
    times: dict[tuple[str, str, str, int, int], list[float]] = defaultdict(list)
    for row in read_csv(table, "table", LARGEST_TABLE):
        if row["collective"] not in KINDS or not _within_a_node(row):
            continue
        version = row["nccl_folder"] or "torch.distributed"
        key = (row["gpu"], version, row["collective"], int(row["gpus"]), int(float(row["bytes"])))
        times[key].append(float(row["ms"]) * 1e3)
    lines = ["gpu,version,kind,gpus,bytes,us"]
    lines += [",".join(map(str, (*key, f"{median(values):.5g}"))) for key, values in sorted(times.items())]
    (PACKAGE / "data" / "measured.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _within_a_node(row: dict[str, str]) -> bool:
    if "vidur" not in row["source"]:
        return True
    return f"_dgx/all_reduce.csv (devices per node {row['gpus']})" in row["source"]


def fit() -> None:
    """Write the constants of every link."""
    from buddysim.training.collectives.fit import fitted_links

    content: dict[str, Any] = {}
    for link, constants in fitted_links().items():
        content[link] = {name: value for name, value in asdict(constants).items() if value is not None}
    for link, (other, factor, why) in ASSUMED.items():
        table = {name: dict(value) if isinstance(value, dict) else value for name, value in content[other].items()}
        for protocol in ("small", "medium", "large"):
            table[protocol]["gb_per_s"] *= factor
        content[link] = {**table, "source": f"assumed: as {other}, {why}"}
    text = "# Constants of collectives by link between GPUs; written by tools/fit_collectives.py.\n\n"
    (PACKAGE / "fitted.toml").write_text(text + toml_text(_rounded(content)), encoding="utf-8")


def _rounded(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _rounded(value) for name, value in content.items()}
    return float(f"{content:.4g}") if isinstance(content, float) else content


def page() -> str:
    """Return the page of errors."""
    parts = [_HEAD]
    for link, constants in link_constants().items():
        switch = constants.switch
        protocols = (constants.small, constants.medium, constants.large)
        cells = [f"{one.launch_us:.3g}, {one.hop_us:.3g}, {one.gb_per_s:.3g}" for one in protocols]
        cells.append(f"{constants.own_gb_per_s:.3g}")
        cells.append(f"{switch.launch_us:.3g}, {switch.gb_per_s:.3g}" if switch else "-")
        parts.append(f"| `{link}` | {' | '.join(cells)} | {constants.source} |")
    parts.append(_MIDDLE)
    rows = collective_errors()
    parts += [_row(row) for row in sorted(rows, key=lambda row: (not row.fitted, row.gpu, row.version, row.kind))]
    return "\n".join(parts) + "\n"


def _row(row: CollectiveErrors) -> str:
    use = "fitted" if row.fitted else "checked"
    size = "large" if row.large else "small"
    return (
        f"| {row.gpu} | `{LINKS[row.gpu]}` | {row.version} | {row.kind} | {size} | {use} | {row.rows} | "
        f"{row.ratio:.2f} | {100 * row.error:.1f} | {100 * row.near:.0f} |"
    )


_HEAD = """# Errors of collectives

This page compares predicted with measured times of collectives within a node. `python -m
tools.write_reference` writes it.

A collective takes the time of its fastest algorithm and protocol. [The module](../reference/python.md) has the formula:
steps from GPU to GPU, each with a latency, and bytes at the rate of a GPU's link.

## Constants

Each protocol has three: microseconds without data, microseconds of a step, GB/s of a GPU.

| link | small messages | medium messages | large messages | own part, GB/s | switch: us, GB/s | source |
|---|---|---|---|---|---|---|"""

_MIDDLE = """
## Errors

Large means 16 MiB and more. Constants are fitted to every second size of one GPU with one version of NCCL. The other
rows were used for nothing but this table. The split was written when a first model had been tried on the same data.

| GPU | link | NCCL | kind | sizes | use | rows | predicted / measured | median error, % | within 25 %, % |
|---|---|---|---|---|---|---|---|---|---|"""


def main(arguments: list[str]) -> int:
    """Run one of the two commands."""
    if arguments[:1] == ["convert"] and len(arguments) == 2:
        convert(arguments[1])
    elif arguments == ["fit"]:
        fit()
    else:
        print("usage: python -m tools.fit_collectives convert FILE.csv | fit", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
