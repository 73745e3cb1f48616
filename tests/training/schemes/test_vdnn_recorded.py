"""The papers' policies on recorded transformers: which tensors move is what the tape says."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.training.contents.recorded_densities import density_of
from buddysim.training.driver import simulate_outcome
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.outcome import IterationOutcome
from buddysim.training.recorded_step.from_config import network_from_config
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
        ("cdma-zv", "no zeros"),
    ],
)
def test_what_has_nothing_to_do_says_so(scheme: str, reason: str):
    assert reason in outcome(scheme).plan.nothing_to_do


OPT: dict[str, Any] = {
    "model_type": "opt",
    "architectures": ["OPTForCausalLM"],
    "hidden_size": 64,
    "ffn_dim": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 500,
    "max_position_embeddings": 128,
    "word_embed_proj_dim": 64,
    "activation_function": "relu",
    "do_layer_norm_before": True,
    "dropout": 0.0,
    "torch_dtype": "float32",
}


def test_the_dma_engine_compresses_what_relus_make():
    """Results of ReLUs have the density that was measured in a small OPT; all else moves as it is, with masks."""
    network = network_from_config(OPT, sequence=64, recipe="fp32")
    result = simulate_outcome(network, 2, "a100-80", "cdma-zv")
    assert not result.plan.nothing_to_do
    fractions = {}
    for task in result.program.tasks:
        if task.stream == "offload":
            name = result.network.layers[task.layer].name
            fractions[task.byte_count, name] = task.moved_bytes / task.byte_count
    sparse = [one for one in fractions.values() if one < 1]
    assert len(sparse) == OPT["num_hidden_layers"]
    expected = density_of("relu") + 1 / 32  # a mask bit for 32 of a value
    assert all(one == pytest.approx(expected, abs=1e-4) for one in sparse)
    assert 0.2 < density_of("relu") < 0.6
    assert density_of("mul") == 1
