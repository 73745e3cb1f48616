"""``python -m buddysim``."""

import sys

from buddysim.cli import main

if __name__ == "__main__":
    sys.exit(main())
