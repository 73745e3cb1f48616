"""The papers' policies on recorded transformers: which tensors move is what the tape says."""

from __future__ import annotations

import pytest

from buddysim.training.driver import simulate_outcome
from buddysim.training.networks.from_config import network_from_config
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.outcome import IterationOutcome
from tests.training.host.test_recorded_host import CONFIG


def outcome(scheme: str) -> IterationOutcome:
    """An iteration of a small Llama."""
    return simulate_outcome(network_from_config(CONFIG, sequence=64), 2, "a100-80", scheme)


@pytest.mark.parametrize("scheme", ["vdnn-all-p", "vdnn-all-m", "naive-swap"])
def test_vdnn_moves_the_saved_outputs_of_feature_layers(scheme: str):
    result = outcome(scheme)
    network = result.network
    assert isinstance(network, RecordedNetwork)
    outputs = 0
    for layer in network.layers[1:]:
        readers = network.consumers(layer.index)
        if not readers or network.layers[readers[-1]].part != "features":
            continue  # the last layers are untouched (Section IV-A)
        saved_by = [one for one in network.layers[1:] if layer.index in network.saved_inputs(one.index)]
        if saved_by or "y" in layer.backward_reads:
            outputs += network.output_bytes(layer.index, 2)
    assert result.offload_bytes == result.prefetch_bytes == outputs
    saved = {one.storage for one in network.tape.saved}
    activations = [network.tape.storages[number] for number in saved]
    assert outputs < sum(one.bytes for one in activations if one.kind == "activation")


def test_without_offload_memory_is_that_of_the_record():
    eager, none = outcome("eager"), outcome("vdnn-none-p")
    assert none.all_layers.usage.peak_bytes == pytest.approx(eager.all_layers.usage.peak_bytes, rel=0.02)


@pytest.mark.parametrize(
    ("scheme", "reason"),
    [
        ("vdnn-conv-p", "no CONV layers"),
        ("cswap", "no CONV layers"),
        ("vdnnpp", "no CONV layers"),
        ("gist-binarize", "no ReLU before max pooling"),
        ("gist-lossless", "no ReLU"),
    ],
)
def test_what_has_nothing_to_do_says_so(scheme: str, reason: str):
    assert reason in outcome(scheme).plan.nothing_to_do
