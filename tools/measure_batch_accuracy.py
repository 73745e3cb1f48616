"""Trains a small network with several minibatches and seeds: the accuracy in Fig. 13d of Buddy Compression.

python tools/measure_batch_accuracy.py      runs the missing trainings, and writes the file after each
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
from buddysim.base.textfile import parse_json  # noqa: E402
from buddysim.papers.buddy import batch_accuracy  # noqa: E402
from buddysim.training.contents.observe_training import import_torch  # noqa: E402

SHIPPED = ROOT / "buddysim" / "papers" / "buddy" / batch_accuracy.FILE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the missing trainings."""
    parser = argparse.ArgumentParser(prog="measure_batch_accuracy.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=SHIPPED)
    args = parser.parse_args(argv)
    try:
        torch = import_torch("measure_batch_accuracy.py")
        torch.set_num_threads(1)  # one thread: sums in a fixed order
        torch.use_deterministic_algorithms(True)
        about = {
            "network": batch_accuracy.NETWORK,
            "data": batch_accuracy.DATA,
            "training": f"SGD, {batch_accuracy.EPOCHS} epochs, "
            f"learning rate {batch_accuracy.LEARNING_RATE} x minibatch / 256, "
            f"divided by ten after two thirds, momentum {batch_accuracy.MOMENTUM}, "
            f"weight decay {batch_accuracy.WEIGHT_DECAY}",
            "program": f"tools/measure_batch_accuracy.py, PyTorch {torch.__version__} on the CPU, one thread, "
            "deterministic algorithms: another kind of processor may round differently",
            "licence": "BSD-3-Clause, as the package; the data are Zalando's, under the MIT licence",
        }
        made = parse_json(args.output.read_text(encoding="utf-8"), str(args.output)) if args.output.exists() else {}
        if {key: made.get(key) for key in about} != about:
            made = about | {"runs": {str(batch): {} for batch in batch_accuracy.MINIBATCHES}}
        for seed in batch_accuracy.SEEDS:
            for batch, runs in made["runs"].items():
                if str(seed) not in runs:
                    runs[str(seed)] = batch_accuracy.train(int(batch), seed)
                    write_text(args.output, json.dumps(made, indent=1) + "\n")
                    print(f"minibatch {batch}, seed {seed}: {runs[str(seed)][-1]} %", flush=True)
    except (BuddysimError, OSError, ValueError) as error:
        print(f"measure_batch_accuracy.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
