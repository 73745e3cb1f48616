"""The page of `plot ideas-today`: what pays on each network behind each link, and every idea's best scheme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from textwrap import wrap
from typing import Any

_WIDTH = 120
Row = Mapping[str, Any]


def best(rows: Sequence[Row]) -> Row | None:
    """Return the fastest that fits of an idea's schemes, else the nearest; None where all have nothing to do."""
    active = [row for row in rows if not row["nothing_to_do"]]
    costs = {True: "slowdown", False: "shortfall_gib"}
    return min(active, key=lambda row: (not row["fits"], row[costs[bool(row["fits"])]]), default=None)


def page_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the page.

    Parameters
    ----------
    rows : as the figure's data has them
    """
    networks, links, ideas = (list(dict.fromkeys(row[name] for row in rows)) for name in ("network", "link", "idea"))
    yield from _HEAD.splitlines()
    yield ""
    for network in networks:
        own = [row for row in rows if row["network"] == network]
        yield f"## {network}"
        yield ""
        yield from _summary(own, links)
        yield ""
        yield f"| idea, in {own[0]['memory_gib']:,.1f} GiB | {' | '.join(links)} |"
        yield f"|---|{'---|' * len(links)}"
        for idea in ideas:
            cells = [_cell(best([row for row in own if (row["link"], row["idea"]) == (link, idea)])) for link in links]
            yield f"| {idea} | {' | '.join(cells)} |"
        yield ""
    yield from _TAIL.splitlines()


def _summary(rows: Sequence[Row], links: Sequence[str]) -> Iterator[str]:
    """What fits and is fastest behind each link; lossy schemes apart."""
    for link in links:
        own = [row for row in rows if row["link"] == link]
        lossless = [row for row in own if not row["is_lossy"]]
        first, lossy = best(lossless), best([row for row in own if row["is_lossy"]])
        assert first is not None
        if first["fits"]:
            text = f"{first['scheme']} is the fastest that fits, {first['slowdown']:.2f}x the time"
        else:
            text = f"no lossless scheme fits; the nearest is {first['scheme']}, {first['shortfall_gib']:,.1f} GiB short"
            text += f": it would in {_needed_percent(first):.1f} % of what eager needs"
        if lossy is not None and lossy["fits"] and (not first["fits"] or lossy["slowdown"] < first["slowdown"]):
            text += f"; the lossy {lossy['scheme']} takes {lossy['slowdown']:.2f}x"
        n_fit = sum(bool(row["fits"]) and not row["nothing_to_do"] for row in own)
        line = f"- {link}: {text} ({n_fit} of {len(own)} schemes fit)."
        yield from wrap(line, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _needed_percent(row: Row) -> float:
    """What a scheme needs of eager's memory, rounded up; it was offered half."""
    needed: float = 1 + row["shortfall_gib"] / row["memory_gib"]
    return ceil(500 * needed) / 10


def _cell(row: Row | None) -> str:
    if row is None:
        return "nothing to do"
    name = "" if row["scheme"] == row["idea"].partition(",")[0] else f" (`{row['scheme']}`)"
    if row["fits"]:
        return f"{row['slowdown']:.2f}x{name}"
    where = " of host memory" if row["memory"] == "host" else ""
    return f"{row['shortfall_gib']:,.1f} GiB{where} short{name}"


_HEAD = """
# Ideas in today's trainings

`python -m buddysim plot ideas-today -o docs/explanation/ideas-today.png` makes this page, its figure and
[every number](ideas-today.csv). The study is `buddysim/figures/studies/ideas-today.toml`: one GPU (`h100-sxm`) with
half of the memory that `eager` needs, behind three host links. A scheme's time is relative to `eager` in enough memory.

![Which idea fits in half of the memory, and what it costs](ideas-today.png)

Of a paper's family, tables and figure have the fastest scheme that fits, else the nearest. "Short" is what exceeds the
memory. Schemes that change the training's values are lossy, and have rows of their own.
""".strip()

_TAIL = """
## How to read it

- VGG-16 has no optimizer, as in the papers; the language models have AdamW in the formats of `bf16`, one micro-step an
  update. The host updates weights at the rate of one GPU's part of a server, so that offload of the optimizer costs
  most where a step is short.
- The machine has as much host memory as any scheme takes. Drives are not used.
- Each scheme has its default options, and runs alone: mixtures, such as `offload-optimizer` with recomputation, are not
  in the study.
- Ratio and slowdown of `buddy-scaled` are given in the study, from replays: 1.33x for VGG-16, as published. Language
  models get 1.05x, because of a trained transformer's tensors only Adam's squares in bf16 compress
  ([Buddy Compression on transformers](buddy-transformers.md)).
""".strip()
