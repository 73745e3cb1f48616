"""What docs/validation/llm.md says about memory."""

from __future__ import annotations

from buddysim.validation.memory.measured_rows import readings


def notes() -> str:
    """Return how the sources are read, and the causes of errors."""
    lines = [
        f"- *{source}* ({reading['licence']}; rows {reading['split']}): {' '.join(reading['reading'].split())}"
        for source, reading in readings().items()
    ]
    return "\n".join(["How the sources are read:", "", *lines, "", _CAUSES, "", _LAYER_CAUSES])


HEAD = """
## Training iterations

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
Causes of errors of single layers (Liger):

- *rms_norm, liger*: the printed figures have 16, 32, 64 and then 108 to 112 MiB more than the code allocates. From 8192
  columns on they grow exactly as simulated. What an earlier run left in the process is within them.
- *embedding*: not compared, since the first rows have 12 GiB where the layer has 60 MiB.
""".strip()
