"""Time of a trace against the link's bandwidth, as a picture and as a CSV file of the same name.

python plots/link_sweep.py traces/fdtd2048.bin -o out/link.png

The baseline keeps one link, as in Fig. 11 of Buddy Compression: it counts for allocations in host memory.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import buddysim
from buddysim.figures import save
from buddysim.figures.drawing import style

SCHEMES = ("buddy", "host")
GB_PER_S = (25, 50, 100, 150, 200)  # each direction


def sweep(trace: Path, machine_name: str, gb_per_s: list[int], held: int | None) -> list[dict[str, float]]:
    """A row for each bandwidth: time over that of unlimited device memory with the link held, by scheme."""
    machine = buddysim.Machine.load(machine_name)
    baseline = {"link.bandwidth": f"{held} GB/s" if held else machine.text("link.bandwidth")}
    rows = []
    for rate in gb_per_s:
        linked = machine.with_overrides({"link.bandwidth": f"{rate} GB/s"})
        results = buddysim.compare(trace, linked, (*SCHEMES, "ideal"), baseline_set=baseline)
        rows.append({"link_gb_per_s": rate, **{scheme: results[scheme].slowdown["ratio"] for scheme in SCHEMES}})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("-m", "--machine", default="p100-nvlink2", help="preset or machine file (default: %(default)s)")
    parser.add_argument("--gb-per-s", type=int, nargs="+", default=GB_PER_S, help="link bandwidths")
    parser.add_argument("--held", type=int, help="link of the baseline, GB/s (default: the machine's)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the picture")
    args = parser.parse_args()
    try:
        rows = sweep(args.trace, args.machine, args.gb_per_s, args.held)
        with args.output.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        figure, axes = style.figure(f"{args.trace.name} on {args.machine}: time against ideal")
        for scheme, colour in zip(SCHEMES, style.SERIES[::2], strict=False):
            axes.plot(args.gb_per_s, [row[scheme] for row in rows], "o-", color=colour, label=scheme)
        axes.set(xlabel="link bandwidth, GB/s in each direction", ylabel="time over ideal's", yscale="log")
        style.legend(axes)
        save(figure, args.output)
    except (buddysim.BuddysimError, OSError) as error:
        parser.error(str(error))
    print(args.output)


if __name__ == "__main__":
    main()
