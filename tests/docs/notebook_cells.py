"""A tutorial's notebook as a shell runs it: each cell of commands is a shell of its own."""

from __future__ import annotations

from pathlib import Path

from tools.tutorial_notebooks import IN_THE_CLONE, SHELL, notebook

ENVIRONMENT = "%env "


def cells_of(page: Path) -> list[tuple[str, str]]:
    """Kind and text of each cell of a page's notebook that a shell can run, lines that go on joined."""
    cells = [(cell["metadata"].get("kind", ""), "".join(cell["source"])) for cell in notebook(page)["cells"]
             if cell["cell_type"] == "code"]  # fmt: skip
    return [(kind, text.replace("\\\n", "")) for kind, text in cells if kind != "figure" and text != IN_THE_CLONE]


def shell_of(page: Path) -> list[str]:
    """Return what does in one shell what the notebook's cells do."""
    return [_shell(text) for _, text in cells_of(page)]


def _shell(text: str) -> str:
    if text.startswith(ENVIRONMENT):
        return f"export {text.removeprefix(ENVIRONMENT)}"
    assert text.startswith(f"{SHELL}\n"), text
    return f"(\n{text.removeprefix(SHELL)}\n)"
