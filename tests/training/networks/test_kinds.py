"""Names of layer kinds in PyTorch are there; what modules list as kinds. Contracts: tests/contracts."""

from __future__ import annotations

from types import ModuleType

import pytest

from buddysim.base.returned import WrongReturn
from buddysim.training import zoo
from buddysim.training.networks import kinds
from buddysim.training.networks.layer_kind import LayerKind

every_kind = pytest.mark.parametrize("kind", [kind for _, kind in kinds.REGISTRY.items()], ids=lambda kind: kind.name)


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
