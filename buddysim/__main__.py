"""``python -m buddysim``."""

import sys

from buddysim.base.boundary import ending, inside


def run() -> int:
    """Runs the command; one line says so where this Python isn't the one that buddysim was installed for."""
    return inside(_run, _ended)


def _run() -> int:
    from buddysim.cli import main

    return main()


def _ended(error: BaseException) -> int:
    if isinstance(error, SystemExit):  # `main` lets no other pass than its own
        raise error
    return ending(error).tell()


if __name__ == "__main__":
    sys.exit(run())
