"""docs/reference/network-files.md: its networks, sums and example are as they are; layer-kinds.md has all kinds.

The former need not have all networks: `python -m buddysim networks list` prints what is registered.
"""

from __future__ import annotations

import re
from pathlib import Path

from buddysim.training import zoo
from buddysim.training.networks import kinds
from buddysim.training.networks.layer_kind import Attribute
from buddysim.training.networks.network_bytes import baseline_network_bytes
from buddysim.training.networks.toml_reader import parse_network
from tests.docs.generated import page

DOCUMENT = (Path(__file__).parents[3] / "docs" / "reference" / "network-files.md").read_text(encoding="utf-8")
KINDS = page("reference/layer-kinds.md")


def key_text(name: str, attribute: Attribute) -> str:
    if attribute.default is None:
        return f"`{name}` (optional)" if attribute.optional else f"`{name}`"
    shown = str(attribute.default).lower() if isinstance(attribute.default, bool) else attribute.default
    return f"`{name}` = {shown}"


def test_every_network_named_is_one() -> None:
    first_cells = re.findall(r"^\| (`[^|]*) \|", DOCUMENT.partition("## What runs in place")[0], re.MULTILINE)
    named = [name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 40
    assert set(named) <= set(zoo.names())


def test_every_kind_described_is_as_it_is() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| .* \| [\w, ]+ \|$", KINDS, re.MULTILINE)
    described = [name for name in rows if name in kinds.REGISTRY]
    assert {*described} == {*kinds.REGISTRY.names()}
    for name in described:
        kind = kinds.REGISTRY.find(name)
        keys = ", ".join(key_text(*item) for item in kind.attributes.items()) or "-"
        assert f"| `{name}` | {kind.summary} | {keys} | {', '.join(sorted(kind.backward_reads))} |" in KINDS


def test_every_key_is_described_as_it_is() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| (`[^|]+`) \| (\w+) \| ([^|]+) \|$", KINDS, re.MULTILINE))
    described: dict[tuple[str, str, str], list[str]] = {}
    for name, kind in kinds.REGISTRY.items():
        for key, attribute in kind.attributes.items():
            described.setdefault((key, attribute.type, attribute.meaning), []).append(f"`{name}`")
    expected = {(key, ", ".join(sorted(of)), kind, meaning) for (key, kind, meaning), of in described.items()}
    assert expected == rows


def test_the_example_is_a_network() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    network = parse_network(example)
    assert network.layers[4].inputs == (2, 3)
    assert network.layers[5].output_shape == (16, 1, 1)
    assert [layer.part for layer in network.layers[5:]] == ["features", "classifier", "classifier"]


def test_document_sums_are_the_simulated_ones() -> None:
    text = " ".join(DOCUMENT.split())
    sums = {
        (name, batch): baseline_network_bytes(zoo.load(name), batch).total / 2**30
        for name, batch in (("vgg19", 256), ("vgg19", 128), ("vgg19", 32), ("vgg416", 32))
    }
    vgg19 = (
        "For `vgg19` it is {:.2f} GiB at batch 256, {:.2f} at 128 and {:.2f} at 32; for `vgg416` {:.2f} at batch 32."
    )
    assert vgg19.format(*sums.values()) in text
