"""Vision transformers: `modeling_vit.py` of transformers, with a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend
from buddysim.training.architectures.blocks.layers import Dropout, LayerNorm, Linear
from buddysim.training.architectures.language_model import InputShape, TracedModel
from buddysim.training.architectures.model_config import (
    ActivationName,
    Depth,
    ModelConfig,
    Positive,
    Probability,
    Size,
    check_multiple,
    problem,
)
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions

_Pixels = Annotated[int, Field(ge=1, le=1 << 15)]
_Extent = _Pixels | Annotated[list[_Pixels], Field(min_length=2, max_length=2)]


class ViTConfig(ModelConfig):
    """Keys of `ViTConfig`."""

    hidden_size: Size
    num_hidden_layers: Depth
    num_attention_heads: Size
    intermediate_size: Size
    hidden_act: ActivationName = "gelu"
    hidden_dropout_prob: Probability = 0.0
    attention_probs_dropout_prob: Probability = 0.0
    layer_norm_eps: Positive = 1e-12
    image_size: _Extent = 224
    patch_size: _Extent = 16
    num_channels: Annotated[int, Field(ge=1, le=4096)] = 3
    qkv_bias: bool = True
    num_labels: Annotated[int, Field(ge=1, le=1 << 20)] = 2

    @model_validator(mode="before")
    @classmethod
    def _labels(cls, content: dict[str, Any]) -> dict[str, Any]:
        """The classes are those of ``id2label``; two where the file names none."""
        names = content.get("id2label")
        if not isinstance(names, dict):
            return content
        if content.get("num_labels", len(names)) != len(names):
            raise problem("num_labels", f"{len(names)}, the entries of id2label", content["num_labels"])
        return {**content, "num_labels": len(names)}

    @property
    def image(self) -> tuple[int, int]:
        """Height and width of an image, in pixels."""
        return _pair(self.image_size)

    @property
    def patch(self) -> tuple[int, int]:
        """Height and width of a patch, in pixels."""
        return _pair(self.patch_size)

    @property
    def patches(self) -> int:
        """Patches of an image."""
        (height, width), (patch_height, patch_width) = self.image, self.patch
        return (height // patch_height) * (width // patch_width)

    @property
    def max_positions(self) -> int | None:
        """Tokens of an image: its patches and the class."""
        return self.patches + 1

    def check(self) -> None:
        """Refuse heads that don't divide the features, and patches larger than the image."""
        check_multiple("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        if not self.patches:
            raise problem("patch_size", f"at most image_size {self.image_size}", self.patch_size)


def _pair(extent: int | list[int]) -> tuple[int, int]:
    return (extent, extent) if isinstance(extent, int) else (extent[0], extent[1])


class PatchConvolution(Module):
    """A convolution whose stride is its kernel."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.stride = config.patch
        self.weight = Parameter((config.hidden_size, config.num_channels, *config.patch))
        self.bias = Parameter((config.hidden_size,))

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of patches, side by side as in the image."""
        return F.conv2d(x, self.weight, self.bias, self.stride)


class ViTPatchEmbeddings(Module):
    """The features of an image's patches."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.projection = PatchConvolution(config)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Return the features of patches, one after the other."""
        return self.projection(pixel_values).flatten(2).transpose(1, 2)


class ViTEmbeddings(Module):
    """Patches, a token for the class, and positions."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.cls_token = Parameter((1, 1, config.hidden_size))
        self.position_embeddings = Parameter((1, config.patches + 1, config.hidden_size))
        self.patch_embeddings = ViTPatchEmbeddings(config)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Return the features of tokens."""
        batch = pixel_values.shape[0]
        embeddings = self.patch_embeddings(pixel_values)
        cls_tokens = self.cls_token.expand(batch, -1, -1)
        embeddings = F.cat((cls_tokens, embeddings), 1)
        embeddings = embeddings + self.position_embeddings
        embeddings = self.dropout(embeddings)
        return embeddings


class ViTAttention(Module):
    """Attention to all tokens."""

    def __init__(self, config: ViTConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.head_dim = config.hidden_size // config.num_attention_heads
        self.call = AttentionCall(
            scaling=self.head_dim**-0.5, dropout=config.attention_probs_dropout_prob, causal=False
        )
        features = config.hidden_size
        self.q_proj = Linear(features, features, bias=config.qkv_bias)
        self.k_proj = Linear(features, features, bias=config.qkv_bias)
        self.v_proj = Linear(features, features, bias=config.qkv_bias)
        self.o_proj = Linear(features, features, bias=True)

    def forward(self, hidden_states: Tensor) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_proj(hidden_states).view(*hidden_shape).transpose(1, 2)
        key_states = self.k_proj(hidden_states).view(*hidden_shape).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(*hidden_shape).transpose(1, 2)
        attn_output, attn_weights = attend(self.options, self.call, query_states, key_states, value_states, None)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output, attn_weights


class ViTMLP(Module):
    """Two products with an activation between."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.activation_fn = Activation(config.hidden_act)
        self.fc1 = Linear(config.hidden_size, config.intermediate_size)
        self.fc2 = Linear(config.intermediate_size, config.hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        hidden_states = self.fc1(hidden_states)
        hidden_states = self.activation_fn(hidden_states)
        hidden_states = self.fc2(hidden_states)
        return hidden_states


class ViTLayer(Module):
    """Attention and two products, each after a norm and added to its input."""

    def __init__(self, config: ViTConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.attention = ViTAttention(config, options)
        self.layernorm_before = LayerNorm(config.hidden_size)
        self.layernorm_after = LayerNorm(config.hidden_size)
        self.mlp = ViTMLP(config)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        residual = hidden_states
        hidden_states = self.layernorm_before(hidden_states)
        hidden_states, _ = self.attention(hidden_states)
        hidden_states = self.dropout(hidden_states)
        hidden_states = hidden_states + residual
        residual = hidden_states
        hidden_states = self.layernorm_after(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = self.dropout(hidden_states)
        hidden_states = hidden_states + residual
        return hidden_states


class ViTModel(Module):
    """Embeddings, layers, a last norm."""

    def __init__(self, config: ViTConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.embeddings = ViTEmbeddings(config)
        self.layers = [ViTLayer(config, options) for _ in range(config.num_hidden_layers)]
        self.layernorm = LayerNorm(config.hidden_size)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Return the features of all tokens."""
        dtype = self.embeddings.patch_embeddings.projection.weight.dtype
        if pixel_values.dtype is not dtype:
            pixel_values = pixel_values.to(dtype)
        embedding_output = self.embeddings(pixel_values)
        hidden_states = embedding_output
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        sequence_output = self.layernorm(hidden_states)
        return sequence_output


class ViTForImageClassification(TracedModel):
    """The model with a classifier of the first token."""

    WORDS: ClassVar[bool] = False

    def __init__(self, config: ViTConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.image = (config.num_channels, *config.image)
        self.vit = ViTModel(config, self.options)
        self.classifier = Linear(config.hidden_size, config.num_labels)

    @classmethod
    def sequence_of(cls, config: ModelConfig, requested: int | None) -> int:
        """Tokens of an image, which the configuration decides."""
        tokens = config.max_positions or 1
        if requested not in (None, tokens):
            raise BuddysimError(f"sequence {requested}: expected {tokens}, the patches of an image and its class")
        return tokens

    def input_shapes(self, batch: int) -> Mapping[str, InputShape]:
        """Images and their classes."""
        return {"pixel_values": InputShape((batch, *self.image), "float"), "labels": InputShape((batch,))}

    def forward(self, pixel_values: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        sequence_output = self.vit(pixel_values)
        pooled_output = sequence_output[:, 0, :]
        logits = self.classifier(pooled_output)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


ARCHITECTURES = (Architecture("ViTForImageClassification", "vit", ViTConfig, ViTForImageClassification),)
