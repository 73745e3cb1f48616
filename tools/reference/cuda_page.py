"""Writes docs/reference/cpu-and-cuda.md from the table of differences between PyTorch's devices."""

from __future__ import annotations

from buddysim.base.markdown import wrap_markdown
from buddysim.training.networks.from_torch.cuda_rules.differences import differences
from tools.reference import cell, head, table

_TEXT = """
What PyTorch 2.13 saves for the backward pass depends on the device. Saved tensors are measured on the CPU, and
predicted for a GPU. Within `cuda_rules` (`buddysim.training.networks.from_torch.cuda_rules`) PyTorch casts, chooses
kernels and saves on the CPU as on a CUDA GPU. This table has each difference, as a test measures it. It shows the
tensors that one call saves, without weights. Under `autocast` inputs are bf16 and weights fp32.

Sources are files of PyTorch's wheel; those below `aten/` are of its repository. Kernels' own temporaries are no part of
the table, as autograd never sees them. Batch normalisation is that of PyTorch's own kernel, not cuDNN's. A number that
multiplies a tensor (`scores * 0.125`) is saved on the host, whatever the device. So are the step counters of
optimizers.
"""


def cuda_page() -> str:
    """Return the page."""
    rows = [
        (
            *(cell(row.operator), row.recipe, _lines(row.cpu), _lines(row.cuda), cell(row.reason)),
            f"`{row.source}`:{row.line}",
        )
        for row in differences()
    ]
    headings = ("operator", "recipe", "saved on the CPU", "saved on a GPU", "what differs", "source")
    return wrap_markdown(head("Saved tensors on the CPU and on a GPU") + _TEXT + table(headings, rows))


def _lines(saved: str) -> str:
    return "<br>".join(f"`{one}`" for one in saved.split("; "))
