"""Writes docs/reference/layer-kinds.md from the kinds of layers."""

from __future__ import annotations

from buddysim.base.markdown import wrap_markdown
from buddysim.training.networks import kinds
from buddysim.training.networks.layer_kind import Attribute
from tools.reference import cell, head, table

_HEAD = """
Every kind of layer of a [network](network-files.md), with its keys in a network file. `x` are the inputs of a layer,
`y` its output, `dy` the gradient of its output, `mask` what it saved of a mask. The last column is what the backward
step reads; where papers are silent, it is assumed. `python -m buddysim list layer-kind NAME` shows one kind;
[Add a layer kind](../how-to/add-a-layer-kind.md) adds one.
"""
_KEYS = """
A *count* is 1 or more, a *size* 0 or more. A *fraction* is 0 or more and below 1. A *pair* of counts or a *padding* of
sizes is one number, or height and width. A *shape* is a list of extents. A *flag* is true or false.
"""


def layer_page() -> str:
    """Return the page: a table of kinds, then one of their keys."""
    rows = []
    described: dict[tuple[str, str, str], list[str]] = {}
    for name, kind in kinds.REGISTRY.items():
        keys = ", ".join(_key(*item) for item in kind.attributes.items()) or "-"
        rows.append((f"`{name}`", cell(kind.summary), keys, ", ".join(sorted(kind.backward_reads))))
        for key, attribute in kind.attributes.items():
            described.setdefault((key, attribute.type, attribute.meaning), []).append(f"`{name}`")
    meanings = [
        (f"`{key}`", ", ".join(sorted(of)), value_type, cell(meaning))
        for (key, value_type, meaning), of in sorted(described.items(), key=lambda item: (item[0][0], item[1]))
    ]
    return wrap_markdown(
        head("Layer kinds")
        + _HEAD
        + table(("kind", "computes", "keys", "backward reads"), sorted(rows, key=lambda row: row[0].strip("`")))
        + "\n## Keys\n"
        + _KEYS
        + table(("key", "kinds", "type", "meaning"), meanings)
    )


def _key(name: str, attribute: Attribute) -> str:
    if attribute.default is None:
        return f"`{name}` (optional)" if attribute.optional else f"`{name}`"
    shown = str(attribute.default).lower() if isinstance(attribute.default, bool) else attribute.default
    return f"`{name}` = {shown}"
