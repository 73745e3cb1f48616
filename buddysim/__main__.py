"""``python -m buddysim``."""

from buddysim.base import signals

signals.begin()  # before the imports that take time

import sys  # noqa: E402

from buddysim.base.boundary import ending, inside  # noqa: E402
from buddysim.base.terminal import drop_unwritten, name_standard_output  # noqa: E402


def run() -> int:
    """Runs the command; one line says so where this Python isn't the one that buddysim was installed for."""
    try:
        return signals.run_to_end(lambda: inside(_run, _ended))
    finally:
        signals.ignore()
        drop_unwritten(sys.stderr)


def _run() -> int:
    from buddysim.cli import main

    name_standard_output()
    return main()


def _ended(error: BaseException) -> int:
    if isinstance(error, SystemExit):  # `main` lets no other pass than its own
        raise error
    return ending(error).tell()


if __name__ == "__main__":
    sys.exit(run())
