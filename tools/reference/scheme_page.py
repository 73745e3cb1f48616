"""The page of training schemes: a row for each file of schemes."""

from __future__ import annotations

from buddysim.training import schemes
from buddysim.training.scheme_facts import SchemeFacts

_HEAD = """# Training schemes

Made from the files of `buddysim/training/schemes/` by `python -m tools.write_reference`.

`train --scheme NAME` simulates one, `--scheme all` all that need no option. A scheme that has nothing to do on a
network says so in its row. `--save-plan FILE` writes what a scheme decides, and `--plan FILE` reads it back
([plan files](plan-files.md)).

| schemes | source | what moves | what it costs | where it applies | its check |
|---|---|---|---|---|---|
"""


def scheme_page() -> str:
    """Return the page."""
    names: dict[SchemeFacts, list[str]] = {}
    for name in schemes.REGISTRY.names():
        facts = getattr(schemes.REGISTRY.find(name), "FACTS", None)
        if facts is not None:
            names.setdefault(facts, []).append(name)
    rows = [f"| {', '.join(f'`{one}`' for one in own)} | {' | '.join(facts)} |" for facts, own in names.items()]
    return _HEAD + "\n".join(rows) + "\n"
