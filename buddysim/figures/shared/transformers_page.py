"""The page of `plot buddy-transformers`: ratios of tensors, slowdowns of programs, and published ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

_WIDTH = 120
Row = Mapping[str, Any]


def page_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the page.

    Parameters
    ----------
    rows : as the figure's data has them
    """
    yield from _HEAD.splitlines()
    yield from _tensors([row for row in rows if row["part"] == "tensor"])
    yield from _schemes(rows)
    yield from _links(rows)
    yield ""
    yield from _TAIL.splitlines()


def _tensors(rows: Sequence[Row]) -> Iterator[str]:
    tensors, formats = (list(dict.fromkeys(row[name] for row in rows)) for name in ("tensor", "format"))
    yield ""
    threshold = f"{100 * rows[0]['threshold']:.0f} %"
    yield f"Targets at a threshold of {threshold}, entries that overflow, and mean ratio of entries:"
    yield ""
    yield f"| tensors | {' | '.join(formats)} |"
    yield f"|---|{'---|' * len(formats)}"
    for tensor in tensors:
        cells = [
            f"{row['target']}, {100 * row['overflow']:.0f} %, {row['ratio']:.2f}x"
            for each in formats
            for row in rows
            if (row["tensor"], row["format"]) == (tensor, each)
        ]
        yield f"| {tensor} | {' | '.join(cells)} |"
    yield ""
    compressed = [f"{row['tensor']} in {row['format']}" for row in rows if row["target"] != "1x"]
    named = ", ".join(compressed) or "none"
    yield from wrap(
        f"Of {len(rows)} kinds and formats {len(compressed)} have a target above 1x: {named}. "
        "BPC finds little in entries of trained tensors, whose low bits are random; what Buddy Compression saves is "
        "unused memory, such as pages of a KV cache without tokens.",
        _WIDTH,
        break_on_hyphens=False,
    )


def _schemes(rows: Sequence[Row]) -> Iterator[str]:
    own = [row for row in rows if row["part"] == "scheme"]
    machines = list(dict.fromkeys(row["machine"] for row in own))
    yield ""
    yield "## Slowdown of each program"
    yield ""
    yield "Time over that with unlimited memory, and ratio of the memory, behind the machine's own link:"
    yield ""
    yield f"| phase | program | scheme | {' | '.join(machines)} |"
    yield f"|---|---|---|{'---|' * len(machines)}"
    keys = list(dict.fromkeys((row["phase"], row["program"], row["scheme"], row["threshold"]) for row in own))
    for key in keys:
        phase, program, scheme, threshold = key
        cells = [
            f"{row['slowdown']:.2f}x, {row['ratio']:.2f}x"
            for machine in machines
            for row in own
            if (row["phase"], row["program"], row["scheme"], row["threshold"]) == key and row["machine"] == machine
        ]
        name = f"{scheme}, threshold {100 * threshold:.0f} %" if scheme == "buddy" else scheme
        yield f"| {phase} | {program} | {name} | {' | '.join(cells)} |"


def _links(rows: Sequence[Row]) -> Iterator[str]:
    own = [row for row in rows if row["part"] == "link"]
    links = list(dict.fromkeys(row["link_gbs"] for row in own))
    yield ""
    yield "Slowdown of Buddy Compression against the link's bandwidth in each direction:"
    yield ""
    yield f"| machine | program | threshold | {' | '.join(f'{link:g} GB/s' for link in links)} |"
    yield f"|---|---|---|{'---|' * len(links)}"
    for machine, program, threshold in dict.fromkeys((row["machine"], row["program"], row["threshold"]) for row in own):
        cells = [
            f"{row['slowdown']:.2f}x"
            for row in own
            if (row["machine"], row["program"], row["threshold"]) == (machine, program, threshold)
        ]
        yield f"| {machine} | {program} | {100 * threshold:.0f} % | {' | '.join(cells)} |"


_HEAD = """
# Buddy Compression on transformers

`python -m buddysim plot buddy-transformers -o docs/explanation/buddy-transformers.png` makes this page, its figure and
[every number](buddy-transformers.csv). The traces are Triton kernels on the tensors of a tiny language model, which
learnt Python's help texts for a minute; `python -m tools.transformer_traces` makes them anew.

![Ratios of a transformer's tensors, and slowdowns of its kernels](buddy-transformers.png)

## Ratios of tensors
""".strip()

_TAIL = """
## How to read it

- **Scaled.** Each GPU has eight memory channels, with SMs, L2 slices, metadata cache and link in proportion; latencies
  stay. Its L2 is at most a quarter of the trace's footprint, as a model's data are many times a real L2.
- **Contents.** A tiny model tells what a number format does to sizes, little about a large one's contents: outliers,
  unused experts or padding. Published ratios of large models are of whole tensors, not of entries of 128 B. DFloat11:
  1.47x for weights in bf16 (67.8 % of the size, Llama 3.1 8B). Bit-planes with zstd: 1.34x for weights and 1.88x for KV
  caches (arXiv 2503.18869). A normal distribution's bf16 values have an entropy of 65.9 % of their size.
- **Unified Memory** has half of the footprint as device memory. Traces are smaller than its blocks of 2 MiB would need,
  so that its slowdown is pessimistic.
- **Training.** `train` and `fit` take the ratios of kinds and formats, and the slowdowns of classes of kernels, as
  ranges: `--scheme buddy-scaled --buddy-study pessimistic` or `optimistic`. Products of matrices have no trace here:
  they are taken to lie between the others.
- Targets are profiled on the trace itself: optimistic. Times are not compared with a GPU.
""".strip()
