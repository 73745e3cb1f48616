"""Mamba 2: `modeling_mamba2.py` of transformers, without the packages mamba-ssm and causal-conv1d."""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.layers import Embedding, Linear
from buddysim.training.architectures.blocks.mamba2_mixer import Mamba2Mixer
from buddysim.training.architectures.blocks.rms_norm import RMSNorm
from buddysim.training.architectures.language_model import CausalModel
from buddysim.training.architectures.mamba2_config import Mamba2Config
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions


class Mamba2Block(Module):
    """A norm and such a layer, added to its input in fp32 unless the file says otherwise."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.residual_in_fp32 = config.residual_in_fp32
        self.norm = RMSNorm(config.hidden_size)
        self.mixer = Mamba2Mixer(config)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        residual = hidden_states
        hidden_states = self.norm(hidden_states.to(self.norm.weight.dtype))
        if self.residual_in_fp32:
            residual = residual.to(float32)
        hidden_states = self.mixer(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class Mamba2Model(Module):
    """Embedding, layers, a last norm."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.embeddings = Embedding(config.vocab_size, config.hidden_size)
        self.layers = [Mamba2Block(config) for _ in range(config.num_hidden_layers)]
        self.norm_f = RMSNorm(config.hidden_size)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the features of all tokens."""
        inputs_embeds = self.embeddings(input_ids)
        hidden_states = inputs_embeds
        for mixer_block in self.layers:
            hidden_states = mixer_block(hidden_states)
        hidden_states = self.norm_f(hidden_states)
        return hidden_states


class Mamba2ForCausalLM(CausalModel):
    """A recurrence in every layer, no attention."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("eager",)

    def __init__(self, config: Mamba2Config, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.backbone = Mamba2Model(config)
        tied = self.backbone.embeddings.weight if config.tie_word_embeddings else None
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False, weight=tied)

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm, for a loss in parts as the output matrix has them."""
        assert self.lm_head is not None
        features = self.backbone(input_ids)
        return features if self.options.loss == "whole" else features.to(self.lm_head.weight.dtype)

    def logits(self, hidden_states: Tensor) -> Tensor:
        """Return the scores of all words, in fp32."""
        assert self.lm_head is not None
        return self.lm_head(hidden_states.to(self.lm_head.weight.dtype)).float()


ARCHITECTURES = (Architecture("Mamba2ForCausalLM", "mamba2", Mamba2Config, Mamba2ForCausalLM),)
