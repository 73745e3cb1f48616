"""Replays a trace under several memory configurations and draws time and traffic of each.

python plots/overview.py                                       regenerates plots/fdtd2048.png
python plots/overview.py TRACE.bin -m MACHINE -o FIGURE.pdf     the same of another trace, on another machine
"""

from __future__ import annotations

import argparse
from pathlib import Path

import buddysim
from buddysim.figures import ResultSource, overview, save_figure
from buddysim.sweep.store import Store

HERE = Path(__file__).resolve().parent
TRACE = HERE.parent / "traces" / "fdtd2048.bin"
SCHEMES = ("ideal", "bandwidth-compression", "buddy", "pinned-host")  # 'ideal' is what the others are compared with


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trace", nargs="?", type=Path, default=TRACE, help=f"default: {TRACE.name}")
    parser.add_argument("-m", "--machine", default="p100-nvlink2", help="preset or machine file (default: %(default)s)")
    parser.add_argument("-s", "--scheme", default=",".join(SCHEMES), help="default: %(default)s")
    parser.add_argument("-o", "--output", type=Path, help="default: TRACE.png in this script's folder")
    parser.add_argument("--store", type=Path, help="folder of results (default: as sweep has it)")
    args = parser.parse_args()
    path = args.output or HERE / f"{args.trace.stem}.png"
    try:
        results = ResultSource(Store.at(args.store)).replay(args.trace, args.scheme.split(","), args.machine)
        save_figure(overview.draw(results), path)
    except buddysim.BuddysimError as error:
        parser.error(str(error))
    print(path)


if __name__ == "__main__":
    main()
