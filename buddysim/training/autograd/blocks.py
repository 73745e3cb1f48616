"""The blocks of a model: what it has many of, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.training.autograd.module import Module


def blocks_of(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """Modules in lists with weights, by path, in their order; lists within blocks don't count."""
    for name, child in module.children():
        inner = f"{path}.{name}" if path else name
        if "." in name:
            if child.parameters():
                yield inner, child
        else:
            yield from blocks_of(child, inner)
