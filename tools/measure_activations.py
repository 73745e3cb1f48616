"""Measures the feature maps that ship with the package: trains a network and writes the activations file.

python tools/measure_activations.py --epochs 6 -o buddysim/training/contents/data/fashion-mnist.maps [--data FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.training.contents.measure import FASHION_MNIST, MeasureSettings, measure


def main(argv: Sequence[str] | None = None) -> int:
    """Train, observe, write."""
    parser = argparse.ArgumentParser(prog="measure_activations.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    parser.add_argument("--epochs", type=int, default=MeasureSettings.epochs)
    parser.add_argument("--images", type=int, default=0, help="train with the first so many images; 0: all")
    parser.add_argument("--data", type=Path, default=FASHION_MNIST, metavar="FOLDER", help="of Fashion-MNIST")
    args = parser.parse_args(argv)
    start = time.monotonic()

    def progress(done: int, total: int, loss: float) -> None:
        print(f"iteration {done} of {total}, loss {loss:.4f}, {time.monotonic() - start:.0f} s", flush=True)

    try:
        settings = MeasureSettings(data=args.data, epochs=args.epochs, images=args.images)
        limited = f" --images {args.images}" if args.images else ""
        measure(args.output, settings, progress, f"python tools/measure_activations.py --epochs {args.epochs}{limited}")
    except BuddysimError as error:
        print(f"measure_activations.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
