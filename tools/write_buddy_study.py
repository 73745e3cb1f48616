"""Write what `train` takes from `plot buddy-transformers`: ``python -m tools.write_buddy_study``."""

from __future__ import annotations

from pathlib import Path

from buddysim.base.output import write_text
from buddysim.base.textfile import csv_rows, read_text, toml_text
from buddysim.training.contents.buddy_study import CLASSES, DATA
from buddysim.training.schemes.buddy_scaled import MAX_RATIO

SOURCE = Path(__file__).parents[1] / "docs" / "explanation" / "buddy-transformers.csv"
_THRESHOLD = "0.3"
_PROVENANCE = (
    "docs/explanation/buddy-transformers.csv, by python -m buddysim plot buddy-transformers: replays of Triton kernels "
    "on a tiny language model's tensors, threshold 30 %, on h100-sxm, h200 and gh200 with links of 64 to 900 GB/s; "
    "made by python -m tools.write_buddy_study"
)


def study_text() -> str:
    """Return the data file's text."""
    (_, columns), *lines = csv_rows(read_text(SOURCE, "study", 1 << 20), str(SOURCE))
    rows = [dict(zip(columns, line, strict=True)) for _, line in lines]
    ratios: dict[str, dict[str, list[float]]] = {}
    times: dict[str, list[float]] = {}
    for row in rows:
        if row["part"] == "tensor":
            target = 128 / {"1x": 128, "1.33x": 96, "2x": 64, "4x": 32}[row["target"]]
            high = min(MAX_RATIO, max(target, float(row["ratio"])))
            ratios.setdefault(row["tensor"], {})[row["format"]] = [round(target, 4), round(high, 4)]
        elif (row["scheme"], row["threshold"]) == ("buddy", _THRESHOLD) and row["program"] in CLASSES:
            times.setdefault(row["program"], []).append(float(row["slowdown"]) - 1)
    slowdowns = {name: [round(min(each), 4), round(max(each), 4)] for name, each in times.items()}
    return toml_text({"source": _PROVENANCE, "ratio": ratios, "slowdown": slowdowns})


if __name__ == "__main__":
    write_text(DATA, study_text())
