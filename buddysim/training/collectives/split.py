"""Which measured collectives constants are fitted to, and which ones only check them.

Fitted: for each link one GPU with one version of NCCL, and of its sizes every second one (even powers of two). All
else is for checking: the other sizes, the other versions, other GPUs with the same link (H200, GB200), and Vidur's
timings through ``torch.distributed``. A machine through whose host copies pass is fitted at two GPUs alone: at four and
eight its rates fall to 5 and 1 GB/s, which the data's authors' machine may explain, not the link.
"""

from __future__ import annotations

from buddysim.training.collectives.measured import MeasuredCollective

#: For each link: GPU and version of NCCL of the fitted rows.
FITTED = {
    "nvlink3": ("A100-SXM4", "2.27.3"),
    "nvlink4": ("H100-SXM5-80GB", "2.27.3"),
    "nvlink5": ("B200-SXM", "2.27.3"),
    "pcie5-peer": ("RTX-PRO-6000-BW-SE", "2.29.2"),
    "pcie4-through-host": ("L40S", "2.27.3"),
}

#: The link of each measured GPU.
LINKS = {
    "A100-SXM4": "nvlink3",
    "A100-SXM4-80GB": "nvlink3",
    "H100-SXM5-80GB": "nvlink4",
    "H200-SXM": "nvlink4",
    "B200-SXM": "nvlink5",
    "GB200": "nvlink5",
    "RTX-PRO-6000-BW-SE": "pcie5-peer",
    "L40S": "pcie4-through-host",
}


def is_fitted(row: MeasuredCollective) -> bool:
    """Whether constants are fitted to a row."""
    link = LINKS[row.gpu]
    if (row.gpu, row.version) != FITTED[link]:
        return False
    if link == "pcie4-through-host" and row.gpus != 2:
        return False
    return row.bytes.bit_count() == 1 and (row.bytes.bit_length() - 1) % 2 == 0
