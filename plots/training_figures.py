"""Draws the figures of the papers on training, with the reported values.

python plots/training_figures.py -o out/figures             all of them
python plots/training_figures.py -o plots vdnn-fig14        regenerates plots/vdnn-fig14.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

from buddysim import BuddysimError
from buddysim.figures import REGISTRY, ResultSource, plot
from buddysim.sweep.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="default: all that need no file")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="folder of the figures")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="of results (default: as sweep has it)")
    parser.add_argument("--suffix", default=".png", choices=(".png", ".svg", ".pdf"))
    args = parser.parse_args()
    source = ResultSource(Store.at(args.store))
    names = [name for name, figure in REGISTRY.items() if not hasattr(figure, "FILE") and not hasattr(figure, "STUDY")]
    try:
        args.output.mkdir(parents=True, exist_ok=True)
        for name in args.figures or names:
            path = args.output / f"{name}{args.suffix}"
            plot(name, path, source)
            print(path)
    except (BuddysimError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
