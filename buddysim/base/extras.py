"""How to install extras that need more than ``pip install 'buddysim[...]'``."""

from typing import Final

#: The plain wheel of PyPI brings gigabytes of CUDA libraries along; everything here runs on the CPU.
INSTALL_TORCH: Final = "pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
