"""Trains small networks with Gist's encodings and with uniform rounding; writes the package's files of accuracies.

python tools/measure_gist_accuracy.py                        the missing trainings of a CNN, a file after each
python tools/measure_gist_accuracy.py --network transformer  those of a transformer, with delayed rounding alone
python tools/measure_gist_accuracy.py --iterations N         all trainings, with another length
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.base.output import write_text  # noqa: E402
from buddysim.base.textfile import parse_json  # noqa: E402
from buddysim.papers.gist import format_accuracy, transformer_accuracy  # noqa: E402
from buddysim.papers.gist.format_accuracy import DATA, SEEDS  # noqa: E402
from buddysim.papers.gist.small_training import BATCH  # noqa: E402
from buddysim.training.contents.observe_training import import_torch  # noqa: E402
from buddysim.training.schemes._gist_accuracy import FILES  # noqa: E402

TRAININGS: dict[str, Any] = {"cnn": format_accuracy, "transformer": transformer_accuracy}
SHIPPED = ROOT / "buddysim" / "training" / "contents" / "data"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the missing trainings."""
    parser = argparse.ArgumentParser(prog="measure_gist_accuracy.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", metavar="N", type=int, default=200, help="minibatches (default: 200)")
    parser.add_argument("--network", choices=tuple(TRAININGS), default="cnn", help="(default: cnn)")
    parser.add_argument("-o", "--output", type=Path, help="(default: the package's file)")
    args = parser.parse_args(argv)
    training, output = TRAININGS[args.network], args.output or SHIPPED / FILES[args.network]
    try:
        torch = import_torch("measure_gist_accuracy.py")
        torch.set_num_threads(1)  # one thread: sums in a fixed order
        torch.use_deterministic_algorithms(True)
        made = parse_json(output.read_text(encoding="utf-8"), str(output)) if output.exists() else {}
        if made.get("iterations") != args.iterations:
            made = {
                "network": training.NETWORK,
                "data": DATA,
                "iterations": args.iterations,
                "batch": BATCH,
                "torch": torch.__version__,
                "runs": {name: {} for name in training.CONDITIONS},
            }  # fmt: skip
        for seed in SEEDS:
            for name in training.CONDITIONS:
                if str(seed) not in made["runs"][name]:
                    made["runs"][name][str(seed)] = training.train(name, seed, args.iterations)
                    write_text(output, json.dumps(made, indent=1) + "\n")
                    print(f"{name}, seed {seed}: {made['runs'][name][str(seed)]}", flush=True)
    except (BuddysimError, OSError, ValueError) as error:
        print(f"measure_gist_accuracy.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
