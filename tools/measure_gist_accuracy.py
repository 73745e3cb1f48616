"""Trains a small network with Gist's encodings and with uniform rounding; writes the package's file of accuracies.

python tools/measure_gist_accuracy.py                 runs the missing trainings, and writes the file after each
python tools/measure_gist_accuracy.py --iterations N  runs all trainings with another length
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.base.output import write_text  # noqa: E402
from buddysim.papers.gist.format_accuracy import BATCH, CONDITIONS, DATA, NETWORK, SEEDS, train  # noqa: E402
from buddysim.training.contents.observe_training import import_torch  # noqa: E402
from buddysim.training.schemes._gist_accuracy import FILE  # noqa: E402

SHIPPED = ROOT / "buddysim" / "training" / "contents" / "data"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the missing trainings."""
    parser = argparse.ArgumentParser(prog="measure_gist_accuracy.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", metavar="N", type=int, default=200, help="minibatches (default: 200)")
    parser.add_argument("-o", "--output", type=Path, default=SHIPPED / FILE)
    args = parser.parse_args(argv)
    try:
        torch = import_torch("measure_gist_accuracy.py")
        torch.set_num_threads(1)  # one thread: sums in a fixed order
        torch.use_deterministic_algorithms(True)
        made = json.loads(args.output.read_text(encoding="utf-8")) if args.output.exists() else {}
        if made.get("iterations") != args.iterations:
            made = {
                "network": NETWORK,
                "data": DATA,
                "iterations": args.iterations,
                "batch": BATCH,
                "torch": torch.__version__,
                "runs": {name: {} for name in CONDITIONS},
            }  # fmt: skip
        for seed in SEEDS:
            for name in CONDITIONS:
                if str(seed) not in made["runs"][name]:
                    made["runs"][name][str(seed)] = train(name, seed, args.iterations)
                    write_text(args.output, json.dumps(made, indent=1) + "\n")
                    print(f"{name}, seed {seed}: {made['runs'][name][str(seed)]}", flush=True)
    except (BuddysimError, OSError, ValueError) as error:
        print(f"measure_gist_accuracy.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
