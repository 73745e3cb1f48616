"""A configuration that no architecture here reads: transformers' class, recorded, against the step on real tensors.

Each class is one of a family that the package has no file of: other norms, experts, sinks, recurrences, sound, images.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.cli import main  # noqa: E402
from buddysim.training import simulate  # noqa: E402
from buddysim.training.architectures.read_config import UnreadConfig  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.recorded_step.from_config import network_from_config  # noqa: E402
from buddysim.training.recorded_step.library_class import find_class  # noqa: E402
from tests.training.transformers.compared import (  # noqa: E402
    Rows,
    differences_of,
    peak_of_tape,
    saved_of_measured,
    saved_of_tape,
)
from tests.training.transformers.measured import measure  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

BATCH, TOKENS = 3, 10
_TEXT: dict[str, Any] = {
    "vocab_size": 77, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "ArceeForCausalLM": {"model_type": "arcee", **_TEXT},
    "MambaForCausalLM": {
        "model_type": "mamba", "vocab_size": 77, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 6,
    },
    "ModernBertForMaskedLM": {"model_type": "modernbert", **_TEXT},
    "LlamaForSequenceClassification": {"model_type": "llama", **_TEXT},
    "WhisperForConditionalGeneration": {
        "model_type": "whisper", "vocab_size": 77, "num_mel_bins": 8, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40,
        "d_model": 24, "max_source_positions": 20, "max_target_positions": TOKENS, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    },
    "SiglipForImageClassification": {
        "model_type": "siglip", "num_labels": 7,
        "vision_config": {
            "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 2, "num_attention_heads": 4,
            "image_size": 16, "patch_size": 8, "vision_use_head": False,
        },
    },
}  # fmt: skip


def _nested(depth: int) -> Any:
    return [] if depth == 0 else [_nested(depth - 1)]


def content_of(name: str, **more: Any) -> dict[str, Any]:
    return {"architectures": [name], "dtype": "float32", **CONFIGS[name], **more}


def real(name: str) -> Any:
    """Return the class with weights, on the CPU."""
    keys = {key: value for key, value in CONFIGS[name].items() if key != "model_type"}
    typed = transformers.AutoConfig.for_model(CONFIGS[name]["model_type"], **keys)
    typed.use_cache = False
    cls = getattr(transformers, name)
    attention = "sdpa" if cls._supports_sdpa else "eager"
    torch.manual_seed(0)
    return cls._from_config(typed, attn_implementation=attention).train()


def batch_of(name: str) -> dict[str, Any]:
    words = torch.randint(3, 77, (BATCH, TOKENS))
    targets = words.clone()  # autograd saves both
    if "Whisper" in name:
        return {"input_features": torch.randn(BATCH, 8, 40), "labels": targets}
    if "Siglip" in name:
        return {"pixel_values": torch.randn(BATCH, 3, 16, 16), "labels": torch.randint(0, 7, (BATCH,))}
    labels = torch.randint(0, 2, (BATCH,)) if "Sequence" in name else targets
    return {"input_ids": words, "labels": labels}


def _without_views(rows: Rows) -> Rows:
    """Rows without the operator that returned a tensor: PyTorch's don't tell it from a view of the same form."""
    counts: Rows = Counter()
    for row, count in rows.items():
        counts[(*row[:4], *row[5:])] += count
    return counts


@pytest.mark.parametrize("name", CONFIGS)
def test_a_class_saves_and_allocates_as_measured(name: str) -> None:
    options = {} if "Whisper" in name or "Siglip" in name else {"sequence": TOKENS}
    network = network_from_config(content_of(name), **options)
    model = real(name)
    assert network.parameters == sum(one.numel() for one in model.parameters())
    tape = network.at(BATCH).tape  # type: ignore[attr-defined]
    with cuda_rules():
        measured = measure(model, batch_of(name), None, 1, None, lambda output: output.loss)
    assert list(differences_of(_without_views(saved_of_measured(measured)), _without_views(saved_of_tape(tape)))) == []
    assert peak_of_tape(tape) == max(measured.curve())


@pytest.mark.parametrize(
    "scheme", ["eager", "activation-checkpointing", "offload-activations", "offload-optimizer", "offload-weights"]
)
def test_schemes_run(scheme: str) -> None:
    """Offloading asks when the backward pass reads a feature map: in the pass of the layer whose formula saved it."""
    result = simulate(content_of("ArceeForCausalLM"), 2, "h100-sxm", scheme, sequence=32)
    assert result.counters["fits"]


@pytest.mark.parametrize(
    ("head", "cls"),
    [("causal", "ArceeForCausalLM"), ("classification", "ArceeForSequenceClassification"), ("base", "ArceeModel")],
)
def test_a_head_selects_the_class(head: str, cls: str) -> None:
    network = network_from_config(content_of("ArceeForCausalLM"), sequence=TOKENS, head=head)
    assert network.description == cls
    assert network.at(2).tape.peak_bytes() > 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ({"model_type": "arcee7"}, {}, "model_type: 'arcee7' is not in transformers"),
        ({"model_type": "own", "auto_map": {"AutoModel": "x.Y"}}, {}, "(the file's own code, auto_map, is not run)"),
        ({"architectures": ["ArceeForEverything"]}, {}, "is none of transformers' arcee: expected one of ArceeForC"),
        ({"quantization_config": {"quant_method": "awq"}}, {}, "quantization_config: expected null, or quant_method"),
        ({"num_hidden_layers": 10**9}, {}, "num_hidden_layers: expected at most 1024, found 1000000000"),
        ({"num_attention_heads": 0}, {}, "refuses it: integer division or modulo by zero"),
        ({"hidden_size": "x"}, {}, "refuses it"),
        ({"architectures": 3}, {"head": "masked"}, "head masked: arcee of transformers has causal, classification"),
        ({"nested": _nested(900)}, {}, ": maximum recursion depth exceeded"),
        ({}, {"head": "masked"}, "head masked: arcee of transformers has causal, classification, base"),
        ({}, {"loss": "chunked:4"}, "loss chunked:4: expected whole"),
        ({}, {"packed": 2}, "packed 2: expected 1: LibraryModel attends to all of a sequence"),
        ({}, {"sequence": 65}, "sequence 65: expected at most 64"),
    ],
)
def test_what_is_not_simulated_is_one_line(more: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(BuddysimError) as caught:
        network_from_config(content_of("ArceeForCausalLM", **more), **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_class_may_be_listed_for_two_heads() -> None:
    for head in ("causal", "image-text"):
        keys = UnreadConfig({"model_type": "gemma3n"}, "x", "x")
        selected = find_class(keys, head)
        assert (selected.cls.__name__, selected.head) == ("Gemma3nForConditionalGeneration", head)


def test_a_causal_model_of_a_configuration_of_several_is_its_text_model() -> None:
    text = {key: value for key, value in CONFIGS["ArceeForCausalLM"].items() if key != "model_type"}
    content = {"model_type": "qwen3_5", "text_config": {**text, "head_dim": 8}}
    network = network_from_config(content, sequence=TOKENS, head="causal")
    assert network.description == "Qwen3_5ForCausalLM"
    assert network.parameter_shapes()["model.embed_tokens.weight"] == (77, 32)  # type: ignore[attr-defined]


def test_a_class_of_this_package_under_another_type_is_transformers() -> None:
    content = {**content_of("ArceeForCausalLM"), "architectures": ["LlamaForCausalLM"], "model_type": "internlm3"}
    assert network_from_config(content, sequence=TOKENS).at(1).tape.peak_bytes() > 0  # type: ignore[attr-defined]


def test_a_configuration_that_its_class_does_not_take_is_one_line() -> None:
    with pytest.raises(BuddysimError, match="ReformerModelWithLMHead of transformers can't be built: If you want"):
        network_from_config({"model_type": "reformer", "architectures": ["ReformerModelWithLMHead"]})


def test_pytorch_says_nothing_on_the_screen(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(content_of("ArceeForCausalLM")))
    command = [sys.executable, "-m", "buddysim", "train", str(tmp_path / "config.json"), "--scheme", "eager"]
    ended = subprocess.run([*command, "--machine", "h100-sxm"], capture_output=True, text=True, check=True)
    assert ended.stderr == ""


def test_the_screen_says_what_was_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(content_of("WhisperForConditionalGeneration")))
    assert main(["train", str(tmp_path / "config.json"), "--machine", "h100-sxm", "--scheme", "eager"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    inputs = "input_features 8x40, labels 10"
    assert f"WhisperForConditionalGeneration of transformers {transformers.__version__} on {inputs}" in shown
