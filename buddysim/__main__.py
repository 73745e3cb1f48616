"""``python -m buddysim``."""

import sys

#: What every command needs: another Python than the one that buddysim was installed for lacks one of them.
NEEDED = ("numpy", "scipy", "matplotlib", "zstandard", "zlib_ng", "pydantic", "pydantic_core", "rich", "shtab")


def run() -> int:
    """Runs the command; one line says so where this Python isn't the one that buddysim was installed for."""
    try:
        from buddysim.cli import main

        return main()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        print(
            f"buddysim: error: {sys.executable} has no package {error.name}: expected the Python that buddysim was "
            "installed for: . .venv/bin/activate (after make run), or pip install .",
            file=sys.stderr,
        )
        return 2


if __name__ == "__main__":
    sys.exit(run())
