"""The blocks of a model: what it has many of, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.training.autograd.module import Module

#: The name of what a block's own operations save, next to those of its modules.
BLOCK = "block"
MODEL = "model"


def blocks_of(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """Modules in lists with weights, by path, in their order; lists within blocks don't count."""
    for name, child in module.children():
        inner = f"{path}.{name}" if path else name
        if "." in name:
            if child.parameters():
                yield inner, child
        else:
            yield from blocks_of(child, inner)


def divide_path(module: str) -> tuple[str, str]:
    """Return the block in which a module lies, and the kind of layer that it belongs to within the block.

    >>> divide_path("model.layers.3.mlp.up_proj")
    ('model.layers.3', 'mlp')
    >>> divide_path("encoder.block.0.layer.1.DenseReluDense.wi")
    ('encoder.block.0', 'DenseReluDense')
    >>> divide_path("model.layers.3"), divide_path("model.norm"), divide_path("")
    (('model.layers.3', 'block'), ('model.norm', 'norm'), ('model', 'model'))
    """
    parts = module.split(".") if module else [MODEL]
    number = next((position for position, part in enumerate(parts) if part.isdigit()), None)
    if number is None:
        return ".".join(parts), parts[-1]
    inner = parts[number + 1 :]
    followed = zip(inner, [*inner[1:], ""], strict=False)
    named = [part for part, following in followed if not (part.isdigit() or following.isdigit())]
    return ".".join(parts[: number + 1]), named[0] if named else BLOCK


def is_block(path: str) -> bool:
    """Whether a path of `PeakMemory.saved_by_block` is a block's."""
    return path.rpartition(".")[2].isdigit()
