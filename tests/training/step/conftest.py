"""What sees PyTorch's operators is installed once for a file of tests."""

from tests.training.transformers.conftest import _installed

__all__ = ["_installed"]
