"""A decoder as Llama's: grouped-query attention with rotary embeddings, a gated layer, a norm before each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend
from buddysim.training.architectures.blocks.layers import Embedding, Linear
from buddysim.training.architectures.blocks.masks import causal_mask
from buddysim.training.architectures.blocks.rms_norm import RMSNorm
from buddysim.training.architectures.blocks.rotary import Rotary, RotaryEmbedding, rotated
from buddysim.training.architectures.language_model import CausalModel
from buddysim.training.architectures.rotary_config import GroupedConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions

Rotations = tuple[Tensor, Tensor]
C = TypeVar("C", bound=GroupedConfig)


class GroupedQueryAttention(Module):
    """Attention whose query heads have keys and values in groups.

    Parameters
    ----------
    qkv_bias, output_bias : whether the products of queries, keys and values, and that of the result, add a bias
    norms : queries and keys are normalized over the features of a head
    rotary : whether queries and keys are rotated by their positions
    """

    def __init__(
        self,
        config: GroupedConfig,
        options: ConfigOptions,
        *,
        qkv_bias: bool = False,
        output_bias: bool = False,
        norms: bool = False,
        rotary: bool = True,
    ) -> None:
        super().__init__()
        self.options, self.rotary = options, rotary
        self.head_dim = config.head_features
        self.call = AttentionCall(
            scaling=self.head_dim**-0.5,
            groups=config.num_attention_heads // config.key_value_heads,
            dropout=config.attention_dropout,
        )
        queries, keys = config.num_attention_heads * self.head_dim, config.key_value_heads * self.head_dim
        self.q_proj = Linear(config.hidden_size, queries, bias=qkv_bias)
        self.k_proj = Linear(config.hidden_size, keys, bias=qkv_bias)
        self.v_proj = Linear(config.hidden_size, keys, bias=qkv_bias)
        self.o_proj = Linear(queries, config.hidden_size, bias=output_bias)
        self.q_norm: Module | None = RMSNorm(self.head_dim) if norms else None
        self.k_norm: Module | None = RMSNorm(self.head_dim) if norms else None

    def forward(self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        input_shape = hidden_states.shape[:-1]
        query_states, key_states, value_states = self.projected(hidden_states)
        if self.rotary:
            cos, sin = position_embeddings
            query_states, key_states = self.rotated(query_states, key_states, cos, sin)
        attn_output, attn_weights = self.attended(query_states, key_states, value_states, mask)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output, attn_weights

    def projected(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values."""
        query_states = self.heads(self.q_proj(hidden_states), self.q_norm)
        key_states = self.heads(self.k_proj(hidden_states), self.k_norm)
        return query_states, key_states, self.heads(self.v_proj(hidden_states))

    def heads(self, projected: Tensor, norm: Module | None = None) -> Tensor:
        """Return the heads of queries, keys or values, of shape (batch, heads, tokens, features)."""
        states = projected.view(*projected.shape[:-1], -1, self.head_dim)
        if norm is not None:
            states = norm(states)
        return states.transpose(1, 2)

    def attended(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Weighted:
        """Return the result for each token, and the weights."""
        return attend(self.options, self.call, query, key, value, mask)

    def rotated(self, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys by their positions."""
        return rotated(query, key, cos, sin)


class DecoderLayer(Module):
    """Attention and a gated layer (or experts), each after a norm and added to its input."""

    def __init__(self, features: int, attention: Module, mlp: Module, norm: Callable[[int], Module] = RMSNorm) -> None:
        super().__init__()
        self.self_attn = attention
        self.mlp = mlp
        self.input_layernorm = norm(features)
        self.post_attention_layernorm = norm(features)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations, position_ids: Tensor
    ) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states, _ = self.self_attn(hidden_states, mask, position_embeddings)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class DecoderStack(Module):
    """Embedding, layers, a last norm.

    Parameters
    ----------
    layers : in order
    windows : of each layer's attention, in tokens; None: all earlier tokens; 0: no attention, so no mask
    masks : windows of the masks that the class makes, in its order, whether a layer has them or not
    packed : whether the class passes positions to the masks, which then see packed documents
    chunked : windows are parts of a sequence, instead of the last tokens
    """

    def __init__(
        self,
        options: ConfigOptions,
        layers: Sequence[Module],
        norm: Module,
        *,
        windows: Sequence[int | None],
        masks: Sequence[int | None],
        packed: bool,
        chunked: bool,
        embedding: Embedding,
        rotary: Rotary,
    ) -> None:
        super().__init__()
        self.options, self.windows, self.masks, self.packed = options, windows, masks, packed
        self.chunked = chunked
        self.embed_tokens = embedding
        self.layers = list(layers)
        self.norm = norm
        self.rotary_emb = rotary

    def forward(
        self, input_ids: Tensor, position_ids: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Return the features of all tokens."""
        inputs_embeds = self.embed_tokens(input_ids)
        if position_ids is None:
            position_ids = F.arange(inputs_embeds.shape[1]) + 0
            position_ids = position_ids.unsqueeze(0)
        known = position_ids if self.packed else None
        masks = {
            window: causal_mask(
                self.options, inputs_embeds, known, window, chunked=self.chunked, attention_mask=attention_mask
            )
            for window in self.masks
        }
        hidden_states = inputs_embeds
        position_embeddings = self.rotary_emb(hidden_states, position_ids)
        for layer, window in zip(self.layers, self.windows, strict=True):
            rotations = self.rotary_emb.of_layer(position_embeddings, window)
            hidden_states = layer(hidden_states, masks.get(window), rotations, position_ids)
        hidden_states = self.norm(hidden_states)
        return hidden_states


class DecoderModel(CausalModel, Generic[C]):
    """A language model of such layers."""

    PACKED: ClassVar[bool] = True
    PADDED: ClassVar[bool] = True
    #: Whether windows are parts of a sequence, instead of the last tokens.
    CHUNKED: ClassVar[bool] = False

    def __init__(
        self,
        config: C,
        options: ConfigOptions,
        *,
        windows: Sequence[int | None] | None = None,
        masks: Sequence[int | None] = (None,),
        pad_token_id: int | None = None,
    ) -> None:
        super().__init__(config, options)
        depth = config.num_hidden_layers
        self.model = DecoderStack(
            self.options,
            [self.make_layer(config, index) for index in range(depth)],
            self.make_norm(config.hidden_size),
            windows=[masks[0]] * depth if windows is None else windows,
            masks=masks,
            packed=self.PACKED,
            chunked=self.CHUNKED,
            embedding=self.make_embedding(config, pad_token_id),
            rotary=self.make_rotary(config),
        )
        tied = self.model.embed_tokens.weight if config.tie_word_embeddings else None
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False, weight=tied)

    def make_layer(self, config: C, index: int) -> Module:
        """Make a layer."""
        raise NotImplementedError

    def make_norm(self, features: int) -> Module:
        """Make the last norm."""
        return RMSNorm(features)

    def make_embedding(self, config: C, pad_token_id: int | None) -> Embedding:
        """Make the embedding."""
        return Embedding(config.vocab_size, config.hidden_size, padding_idx=pad_token_id)

    def make_rotary(self, config: C) -> Rotary:
        """Make what gives the cosines and sines of positions."""
        return RotaryEmbedding(config)

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm."""
        return self.model(input_ids, position_ids)

    def padded_states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return these features of a batch with a mask of padding."""
        return self.model(input_ids, None, attention_mask)
