"""Every registered kind of layer keeps the contract of `LayerKind`; names in PyTorch belong to one kind."""

from __future__ import annotations

from collections import Counter
from types import ModuleType

import pytest

from buddysim.base.returned import WrongReturn
from buddysim.training import zoo
from buddysim.training.networks import kinds
from buddysim.training.networks.layer_kind import LayerKind

every_kind = pytest.mark.parametrize("kind", [kind for _, kind in kinds.REGISTRY.items()], ids=lambda kind: kind.name)


@every_kind
def test_a_kind_keeps_the_contract(kind: LayerKind) -> None:
    assert kind.backward_reads <= {"x", "y", "dy", "mask"}
    assert kind.min_inputs >= 1
    assert kind.max_inputs is None or kind.max_inputs >= kind.min_inputs
    assert not (kind.runs_in_place == "elementwise" and "x" in kind.backward_reads)
    assert not kind.reads_zeros or "y" in kind.backward_reads
    if kind.moves is not None:
        assert all(amount >= 0 for amount in kind.moves(24, 12, kind.min_inputs))
    if kind.torch.modules or kind.torch.functions or kind.torch.operators:
        assert all(attribute.default is not None or attribute.optional for attribute in kind.attributes.values())
    assert [row[0] for row in kind.parameters()] == list(kind.attributes)


@pytest.mark.parametrize("where", ["modules", "functions", "operators"])
def test_a_name_in_pytorch_belongs_to_one_kind(where: str) -> None:
    counted = Counter(name for _, kind in kinds.REGISTRY.items() for name in getattr(kind.torch, where))
    assert [name for name, count in counted.items() if count > 1] == []


@every_kind
def test_modules_are_those_of_pytorch(kind: LayerKind) -> None:
    nn = pytest.importorskip("torch.nn")
    assert all(hasattr(nn, name) for name in kind.torch.modules)


def module(**names: object) -> ModuleType:
    made = ModuleType("made")
    vars(made).update(names)
    return made


def test_modules_of_other_contents_have_no_kinds_and_no_networks() -> None:
    for listed in (None, 5, "conv", [1], {"conv": 1}):
        assert not kinds.REGISTRY.adopt(module(KINDS=listed))
        assert not zoo.REGISTRY.adopt(module(NETWORKS=listed))
    assert not zoo.REGISTRY.adopt(module())


def test_a_function_that_builds_no_network_is_refused() -> None:
    recipe = zoo.REGISTRY.adopt(module(NETWORKS={"mine": lambda: 5}))["mine"]
    with pytest.raises(WrongReturn, match="network mine: its function returned 5, expected a Network"):
        _ = recipe.network
