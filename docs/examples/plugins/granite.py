"""An architecture of your own: IBM's Granite, Llama with four factors (transformers, `modeling_granite.py`)."""

from __future__ import annotations

from dataclasses import replace

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.layers import Embedding
from buddysim.training.architectures.decoder import DecoderLayer, Rotations
from buddysim.training.architectures.llama import LlamaConfig, LlamaForCausalLM
from buddysim.training.autograd import Module, Tensor
from buddysim.training.options.config_options import ConfigOptions


class GraniteConfig(LlamaConfig):
    """Keys that Llama's configuration hasn't, with transformers' defaults."""

    embedding_multiplier: float = 1.0
    attention_multiplier: float = 1.0
    residual_multiplier: float = 1.0
    logits_scaling: float = 1.0


class GraniteEmbedding(Embedding):
    """An embedding times a number."""

    factor = 1.0

    def forward(self, numbers: Tensor) -> Tensor:
        return super().forward(numbers) * self.factor


class GraniteDecoderLayer(DecoderLayer):
    """Results times a number before they are added to the layer's input."""

    factor = 1.0

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor | None,
        position_embeddings: Rotations,
        position_ids: Tensor,
    ) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states, _ = self.self_attn(hidden_states, mask, position_embeddings)
        hidden_states = residual + hidden_states * self.factor
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states * self.factor
        return hidden_states


class GraniteForCausalLM(LlamaForCausalLM):
    """Llama's model with the factors of its configuration."""

    def __init__(self, config: GraniteConfig, options: ConfigOptions) -> None:
        self.logits_scaling = config.logits_scaling
        super().__init__(config, options)

    def make_embedding(self, config: GraniteConfig, pad_token_id: int | None) -> Embedding:
        embedding = GraniteEmbedding(config.vocab_size, config.hidden_size, padding_idx=pad_token_id)
        embedding.factor = config.embedding_multiplier
        return embedding

    def make_layer(self, config: GraniteConfig, index: int) -> Module:
        llama = super().make_layer(config, index)
        llama.self_attn.call = replace(llama.self_attn.call, scaling=config.attention_multiplier)
        layer = GraniteDecoderLayer(config.hidden_size, llama.self_attn, llama.mlp)
        layer.factor = config.residual_multiplier
        return layer

    def logits(self, hidden_states: Tensor) -> Tensor:
        logits = super().logits(hidden_states)
        return logits / self.logits_scaling


ARCHITECTURES = [Architecture("GraniteForCausalLM", "granite", GraniteConfig, GraniteForCausalLM)]
