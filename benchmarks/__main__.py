"""``python -m benchmarks``: measure, print a table, and write it as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

import buddysim
from benchmarks import compress_speed, computer, decode_speed, memory, replay_speed, sweep_speed, training_speed
from benchmarks.measurement import Measurement
from buddysim.base.output import check_output, write_text

OUT = Path("out") / "benchmarks"
MODULES = {
    "computer": computer,
    "replay": replay_speed,
    "decode": decode_speed,
    "compress": compress_speed,
    "memory": memory,
    "training": training_speed,
    "sweep": sweep_speed,
}

Measure = Callable[[Path, bool], list[Measurement]]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="measure the simulator's speed and memory"
    )
    parser.add_argument("--quick", action="store_true", help="smaller inputs: one minute instead of several")
    parser.add_argument(
        "--only", type=_part, metavar="PART", action="append", help=f"one of {', '.join(MODULES)}; may be repeated"
    )
    parser.add_argument(
        "--json", metavar="FILE", type=Path, default=OUT / "latest.json", help="output file of the figures"
    )
    args = parser.parse_args()
    args.json.parent.mkdir(parents=True, exist_ok=True)
    check_output(args.json)
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, emoji=False, width=160)
    rows: list[Measurement] = []
    with tempfile.TemporaryDirectory(dir=args.json.parent) as folder:
        for name in args.only or MODULES:
            print(f"measuring {name} ..", file=sys.stderr)
            rows += MODULES[name].measure(Path(folder), args.quick)
    console.print(computer_name())
    console.print(_table(rows))
    content = {
        "buddysim": buddysim.__version__,
        "computer": computer_name(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": args.quick,
        "measurements": [row.to_dict() for row in rows],
    }
    write_text(args.json, json.dumps(content, indent=1) + "\n")
    console.print(f"written: {args.json}")
    return 0


def _part(name: str) -> str:
    if name not in MODULES:
        raise argparse.ArgumentTypeError(f"{name}: expected one of {', '.join(MODULES)}")
    return name


def computer_name() -> str:
    """Return processor, number of cores, and versions of Python and numpy."""
    import numpy

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, numpy {numpy.__version__}"


def _table(rows: list[Measurement]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading, justify in (
        ("measured", "left"),
        ("best", "right"),
        ("median", "right"),
        ("runs", "right"),
        ("required", "right"),
        ("", "left"),
        ("unit", "left"),
        ("comparison", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        required = "" if row.required is None else f"{'<' if row.smaller_is_better else '>='} {row.required:g}"
        status = {None: "", True: "pass", False: "FAIL"}[row.passes]
        table.add_row(
            row.name,
            f"{row.best:.2f}",
            f"{row.median:.2f}",
            f"{len(row.all) or 1}",
            required,
            status,
            row.unit,
            row.comparison,
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
