"""How to install extras that need more than ``pip install 'buddysim[...]'``."""

from typing import Final

#: PyPI's plain wheel installs gigabytes of CUDA libraries; everything here runs on the CPU.
INSTALL_TORCH: Final = "pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
