"""What docs/validation/llm.md says about schemes, and which pairs are not simulated."""

from __future__ import annotations

from buddysim.validation.schemes.measured_schemes import scheme_rows


def notes() -> str:
    """Return the section."""
    rows = [row for row in scheme_rows() if row.reason]
    lines = [f"| {row.id} | {row.compared_with or '-'} | {row.variant} | {row.reason} |" for row in rows]
    table = ["Not simulated:", "", "| row | without | variant | reason |", "|---|---|---|---|", *lines]
    return "\n".join([_HEAD, "", _CAUSES, "", *table])


_HEAD = """
## Schemes of training

Published pairs of trainings that differ by a scheme, next to simulated ones. Nothing is fitted; rules and readings are
those of [method](method.md#schemes-of-training). A slowdown is time over time without the scheme. Its error is that of
the time in addition where more than 5 % are measured (tolerance 30 %), else the difference (2 points). Memory saved has
a tolerance of 10 %.
""".strip()

_CAUSES = """
Causes of errors:

- *torchao-offload-003, -004*: torchao's `step` runs in the thread that launches the backward pass. So updates begin
  once the rest of its launches fits into the stream; a block takes 64 entries. The step without offload is simulated
  1.17 s and measured 1.27 s on this card, so the rest hides too little. With kernels scaled to the
  measured step both rows are 1.189x: -4 and -8 %. With the throttling of the L40S it is 1.41 s, and row -004 1.141x
  ([products on GPUs without timings](operators.md#products-on-gpus-without-timings)). Of the compiled row, which hides
  nothing, updates take 0.60 s; measured 0.57.
- *offload-pr-012 to -014*: simulated copies are hidden wholly, while the source's growing bounds suggest that some are
  not.
""".strip()
