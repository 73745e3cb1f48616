"""What sees PyTorch's operators, and CUDA's rules, are installed once for a file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.training.transformers.conftest import _installed

__all__ = ["_installed", "by_cudas_rules"]


@pytest.fixture(scope="module")
def by_cudas_rules(_installed: None) -> Iterator[None]:
    """CUDA's rules, with flash attention."""
    from buddysim.training.networks.from_torch.cuda_rules import cuda_rules

    with cuda_rules():
        yield
