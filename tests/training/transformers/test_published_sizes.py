"""Models at published size: each weight's name and shape as transformers' class has it, built without memory.

The keys are those of the models' ``config.json`` files.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from buddysim.training.recorded_step.from_config import ConfigNetwork, network_from_config  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_LATENT: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "num_hidden_layers": 61, "n_shared_experts": 1, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "num_experts_per_tok": 8,
    "norm_topk_prob": True, "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
#: By name: the keys, and the parameters that are reported, in 10^9; MTP layers, which no class builds, left out.
PUBLISHED: dict[str, tuple[dict[str, Any], float]] = {
    "DeepSeek-V3": (
        {
            **_LATENT, "model_type": "deepseek_v3", "vocab_size": 129280, "num_attention_heads": 128,
            "num_key_value_heads": 128, "n_routed_experts": 256, "n_group": 8, "topk_group": 4,
            "first_k_dense_replace": 3,
        },
        671.0,
    ),
    "Kimi-K2": (
        {
            **_LATENT, "model_type": "kimi_k2", "vocab_size": 163840, "num_attention_heads": 64,
            "num_key_value_heads": 64, "n_routed_experts": 384, "n_group": 1, "topk_group": 1,
            "first_k_dense_replace": 1,
        },
        1026.4,
    ),
    "GLM-4.5": (
        {
            "architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "vocab_size": 151552,
            "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 92,
            "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": True,
            "use_qk_norm": True, "n_routed_experts": 160, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
        },
        352.8,
    ),
    "gpt-oss-20b": (
        {
            "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880,
            "intermediate_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8,
            "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128,
            "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
        },
        20.9,
    ),
    "Llama-4-Scout's language model": (
        {
            "architectures": ["Llama4ForCausalLM"], "model_type": "llama4_text", "vocab_size": 202048,
            "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48,
            "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 16,
            "num_experts_per_tok": 1, "torch_dtype": "bfloat16",
        },
        107.8,
    ),
    "Qwen3-Next-80B-A3B": (
        {
            "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "vocab_size": 151936,
            "hidden_size": 2048, "intermediate_size": 5120, "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512, "num_hidden_layers": 48, "num_attention_heads": 16,
            "num_key_value_heads": 2, "head_dim": 256, "num_experts": 512, "num_experts_per_tok": 10,
            "full_attention_interval": 4, "partial_rotary_factor": 0.25, "torch_dtype": "bfloat16",
        },
        79.7,
    ),
    "mamba2-2.7b": (
        {
            "architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "vocab_size": 50288, "hidden_size": 2560,
            "num_hidden_layers": 64, "num_heads": 80, "head_dim": 64, "state_size": 128, "n_groups": 1,
            "tie_word_embeddings": True,
        },
        2.7,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_are_those_of_transformers(name: str) -> None:
    keys, billions = PUBLISHED[name]
    network = network_from_config(keys)
    assert isinstance(network, ConfigNetwork)
    left_out = ("model_type", "architectures", "quantization_config")
    typed = transformers.AutoConfig.for_model(
        network.config.architecture.model_type, **{key: value for key, value in keys.items() if key not in left_out}
    )
    with torch.device("meta"):
        model = getattr(transformers, network.config.architecture.name)._from_config(typed)
    assert network.parameter_shapes() == {name: tuple(one.shape) for name, one in model.named_parameters()}
    assert network.parameters == sum(one.numel() for one in model.parameters())
    assert network.parameters / 1e9 == pytest.approx(billions, abs=0.1)
