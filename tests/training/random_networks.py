"""Random networks with forks, joins, in-place layers and a classifier, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from buddysim.training.networks.graph import Layer, Network, Pooling
from tests.training.doubles import Cost

NEEDS = {
    "conv": {"x", "dy"},
    "fc": {"x", "dy"},
    "relu": {"y", "dy"},
    "maxpool": {"x", "y", "dy"},
    "avgpool": {"dy"},
    "lrn": {"x", "y", "dy"},
    "dropout": {"mask", "dy"},
    "concat": {"dy"},
    "add": {"dy"},
}
_WINDOWS = Pooling(2, 2, 2, 2, 0, 0), Pooling(5, 4, 5, 4, 0, 0)
FEATURES = ("conv", "conv", "conv", "maxpool", "avgpool", "lrn", "concat", "add", "dropout")


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Generate a network whose layers read any layer before them, mostly the previous one."""
    layers = [Layer(0, "input", "input", (), (draw(st.integers(1, 3000)),))]

    def add(kind: str, inputs: tuple[int, ...], in_place: bool = False) -> None:
        index = len(layers)
        size = layers[inputs[0]].output_shape if in_place else (draw(st.integers(1, 3000)),)
        layers.append(
            Layer(
                index,
                f"{kind}{index}",
                kind,
                inputs,
                size,
                parameters=draw(st.integers(0, 300)) if kind in ("conv", "fc") else 0,
                in_place=in_place,
                part="classifier" if kind == "fc" else "features",
                backward_reads=frozenset(NEEDS[kind]),
                saved_sample_bytes=size[0] if kind == "dropout" else 0,
                pool=_WINDOWS[draw(st.integers(0, 1))] if kind == "maxpool" else None,
            )
        )

    ends = [0]  # what later layers may read: never the inside of an in-place chain
    for _ in range(draw(st.integers(1, 9))):
        kind = draw(st.sampled_from(FEATURES))
        n_inputs = 2 if kind in ("concat", "add") else 1
        inputs = tuple(dict.fromkeys(ends[-1 - draw(st.integers(0, min(3, len(ends) - 1)))] for _ in range(n_inputs)))
        add(kind, inputs)
        if kind == "conv" and draw(st.booleans()):
            add("relu", (len(layers) - 1,), in_place=True)
        ends.append(len(layers) - 1)
    for _ in range(draw(st.integers(0, 2))):
        add("fc", (ends[-1],))
        ends.append(len(layers) - 1)
    return Network("random", layers)


@st.composite
def costs(draw: st.DrawFn, network: Network) -> Cost:
    """Generate times for every layer and pass; some CONV layers have an algorithm with workspace."""
    times = {
        (layer.name, pass_): draw(st.integers(0, 4_000_000))
        for layer in network.layers[1:]
        for pass_ in ("forward", "backward", "backward_data", "backward_filter")
    }
    conv = [layer.name for layer in network.layers if layer.kind == "conv"]
    hungry = draw(st.lists(st.sampled_from(conv), unique=True)) if conv else []
    return Cost(times, workspaces={name: draw(st.integers(1, 20_000)) for name in hungry})
