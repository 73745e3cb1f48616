"""The page docs/validation/llm.md: every row with a memory figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from buddysim.validation.memory.compared_rows import ComparedRow
from buddysim.validation.memory.measured_rows import readings


def document(trainings: Sequence[ComparedRow], layers: Sequence[ComparedRow]) -> Iterator[str]:
    """Yield the lines of the page."""
    usable = [row for row in trainings if row.is_usable and row.error is not None]
    yield "## Training iterations"
    yield ""
    yield from _HEAD.splitlines()
    yield ""
    yield "| source | rows | median error | largest error | compared |"
    yield "|---|--:|--:|--:|---|"
    for source in dict.fromkeys(row.group for row in usable):
        rows = [row for row in usable if row.group == source]
        yield f"| {source} | {len(rows)} | {_median(rows)} | {_largest(rows)} | {readings()[source]['compared']} |"
    yield f"| all | {len(usable)} | {_median(usable)} | {_largest(usable)} | |"
    yield ""
    yield from _simulated_table(trainings)
    yield ""
    yield from _readings_list(usable)
    yield ""
    yield from _CAUSES.splitlines()
    yield ""
    yield "### Rows that are not simulated"
    yield ""
    yield "| rows | printed | kind | reason |"
    yield "|---|---|---|---|"
    for row in trainings:
        if row.error is None:
            yield f"| {row.subject} | {row.printed} | {row.kind or '-'} | {row.reason} |"
    yield ""
    yield from _layer_lines(layers)


def _simulated_table(rows: Sequence[ComparedRow]) -> Iterator[str]:
    yield "| row | simulated | printed | error | tolerance |"
    yield "|---|--:|--:|--:|--:|"
    for row in rows:
        if row.error is not None:
            tolerance = "5 %" if row.is_usable else "-"
            yield f"| {row.subject} | {row.simulated:.2f} {row.unit} | {row.printed} | {_cell(row)} | {tolerance} |"


def _readings_list(rows: Sequence[ComparedRow]) -> Iterator[str]:
    yield "How the sources are read:"
    yield ""
    for source in dict.fromkeys(row.group for row in rows):
        reading = readings()[source]
        yield f"- *{source}* ({reading['licence']}; rows {reading['split']}): {' '.join(reading['reading'].split())}"


def _layer_lines(layers: Sequence[ComparedRow]) -> Iterator[str]:
    simulated = [row for row in layers if row.error is not None]
    yield "## Single layers"
    yield ""
    yield (
        f"Peaks of Liger's benchmark scripts, {len(simulated)} of {len(layers)} rows simulated: median error "
        f"{_median(simulated)}, tolerance 5 %. {readings()['liger']['reading'].strip()}".replace("\n", " ")
    )
    yield ""
    yield "| script | provider | rows | median error | largest error |"
    yield "|---|---|--:|--:|--:|"
    for group in dict.fromkeys(row.group for row in simulated):
        rows = [row for row in simulated if row.group == group]
        script, provider = group.rsplit(" ", 1)
        yield f"| {script} | {provider} | {len(rows)} | {_median(rows)} | {_largest(rows)} |"
    yield ""
    yield "Not simulated:"
    yield ""
    for group in dict.fromkeys(row.group for row in layers if row.error is None):
        rows = [row for row in layers if row.group == group and row.error is None]
        yield f"- {group}, {len(rows)} rows: {rows[0].reason}."
    yield ""
    yield from _LAYER_CAUSES.splitlines()


def _cell(row: ComparedRow) -> str:
    assert row.error is not None
    text = f"{row.error:+.1%}"
    return f"**{text}**" if row.is_usable and abs(row.error) > 0.05 else text


def _median(rows: Sequence[ComparedRow]) -> str:
    return f"{median(abs(row.error) for row in rows if row.error is not None):.2%}" if rows else "-"


def _largest(rows: Sequence[ComparedRow]) -> str:
    return f"{max((row.error for row in rows if row.error is not None), key=abs):+.2%}" if rows else "-"


_HEAD = """
Published peaks of training iterations, next to the peak of a simulated step. Nothing is fitted. Rules, readings and
split were committed before any row was simulated ([method](method.md#memory-of-language-models)). Rows with a tolerance
are those whose setup is stated; the others are shown. All rows: [llm.csv](llm.csv).
""".strip()

_CAUSES = """
Causes of errors:

- *LoRA and QLoRA* (torchtune-flags-009, -010) are both simulated 0.36 GiB too high. Each row of that table is printed
  as a percentage of the one before, too. All of them together leave 8.492 to 8.499 GiB and 4.610 to 4.615 GiB. So both
  lack the same 0.354 to 0.358 GiB, and what is quantised is right to 0.005 GiB. The printed figures are too small for
  the stated setup. When a forward pass of that commit ends, these live together: weights (5.984 GiB), adapters (0.168),
  their states in bf16 (0.335), rotary angles (0.063), logits (1.957). They are 8.506 GiB, over 8.499; for QLoRA 4.622,
  over 4.615. The peak has a chunk's gradient in addition (0.245), the norm's input in fp32 (0.094) and the workspace
  (0.008). So the rows' setup was another. Of those simulated, none fits either. A first step has no states: 8.519 and
  4.633 GiB. Adapters of attention alone give 8.52 and 4.63. Those of rank 16 give 8.48 and 4.59, of rank 8 8.41 and
  4.53.
- *torchao's rows* are 0.97 to 1.31 GiB too low, as if samples took four times the memory. The reading has 2 samples, as
  the configuration. The same table prints 3,200 tokens/s. An update alone moves 94 GB, 60 ms on an A100, so 2 short
  samples can't reach that. With 8 samples of that length the rows come to +0.9, +1.6, +2.1 and +1.6 %. The reading was
  committed before and stays.
- *torchtune-flags-008* (no tolerance): the update of 8-bit states runs compiled, weight by weight. For the embedding of
  394 M numbers one fp32 copy is 1.47 GiB, as much as is missing; no such copy is simulated.
""".strip()

_LAYER_CAUSES = """
Causes of errors:

- *rms_norm, liger*: the printed figures have 16, 32, 64 and then 108 to 112 MiB more than the code allocates. From 8192
  columns on they grow exactly as simulated. What an earlier run left in the process is within them.
- *embedding*: not compared, since the first rows have 12 GiB where the layer has 60 MiB.
""".strip()
