"""Measures the feature maps of the package: trains a network and writes the activations file.

python tools/measure_activations.py --epochs 6 -o buddysim/training/contents/data/fashion-mnist.maps [--data FOLDER]
python tools/measure_activations.py --reduced     the CSWAP paper's networks, reduced; only missing files

The second command may be interrupted: files of trained networks remain.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.training.contents.observe_training import FASHION_MNIST, ObservationSettings, observe_training
from buddysim.training.contents.reduced_trainings import TRAININGS, path_of, settings_of


def main(argv: Sequence[str] | None = None) -> int:
    """Train the network, observe its feature maps, and write the file."""
    parser = argparse.ArgumentParser(prog="measure_activations.py", description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", "--output", type=Path, metavar="FILE", help="train the small network")
    what.add_argument("--reduced", action="store_true", help="train the reduced networks whose file is missing")
    parser.add_argument("--epochs", type=int, default=ObservationSettings.epochs, help="of the small network")
    parser.add_argument("--images", type=int, default=0, help="train it with the first so many images; 0: all")
    parser.add_argument("--data", type=Path, default=FASHION_MNIST, metavar="FOLDER", help="of Fashion-MNIST")
    args = parser.parse_args(argv)
    try:
        if args.reduced:
            for training in TRAININGS:
                path = path_of(training)
                if not path.exists():
                    _train(path, replace(settings_of(training), data=args.data), "--reduced")
        else:
            settings = ObservationSettings(data=args.data, epochs=args.epochs, images=args.images)
            limited = f" --images {args.images}" if args.images else ""
            _train(args.output, settings, f"--epochs {args.epochs}{limited}")
    except BuddysimError as error:
        print(f"measure_activations.py: error: {error}", file=sys.stderr)
        return 2
    return 0


def _train(path: Path, settings: ObservationSettings, arguments: str) -> None:
    start = time.monotonic()

    def progress(done: int, total: int, loss: float) -> None:
        print(
            f"{path.name}: iteration {done} of {total}, loss {loss:.4f}, {time.monotonic() - start:.0f} s", flush=True
        )

    observe_training(path, settings, progress, f"python tools/measure_activations.py {arguments}")


if __name__ == "__main__":
    sys.exit(main())
