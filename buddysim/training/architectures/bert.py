"""BERT: `modeling_bert.py` of transformers, with the loss of masked words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend, plain_attention
from buddysim.training.architectures.blocks.layers import Dropout, Embedding, LayerNorm, Linear
from buddysim.training.architectures.blocks.loss import Head, parted_loss, whole_loss
from buddysim.training.architectures.language_model import TracedModel
from buddysim.training.architectures.model_config import (
    ActivationName,
    Depth,
    ModelConfig,
    Positions,
    Positive,
    Probability,
    Size,
    Vocabulary,
    check_multiple,
    check_padding,
)
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import int64
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class BertConfig(ModelConfig):
    """Keys of `BertConfig`."""

    REFUSED: ClassVar[Mapping[str, tuple[object, ...]]] = {"is_decoder": (None, False)}

    vocab_size: Vocabulary
    hidden_size: Size
    num_hidden_layers: Depth
    num_attention_heads: Size
    intermediate_size: Size
    hidden_act: ActivationName = "gelu"
    hidden_dropout_prob: Probability = 0.1
    attention_probs_dropout_prob: Probability = 0.1
    max_position_embeddings: Positions = 512
    type_vocab_size: Annotated[int, Field(ge=1, le=1 << 16)] = 2
    layer_norm_eps: Positive = 1e-12
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0

    @property
    def max_positions(self) -> int | None:
        """Tokens of the longest sequence."""
        return self.max_position_embeddings

    def check(self) -> None:
        """Refuse heads that don't divide the features."""
        check_multiple("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        check_padding(self.pad_token_id, self.vocab_size)


class BertEmbeddings(Module):
    """Words, positions and segments, summed and normalized."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.position_embeddings = Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)
        numbers = (1, config.max_position_embeddings)
        self.position_ids = active_tape().buffer(numbers, int64, "position_ids")
        self.token_type_ids = active_tape().buffer(numbers, int64, "token_type_ids")

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the features of tokens."""
        batch, length = input_ids.shape
        position_ids = self.position_ids[:, 0:length]
        buffered_token_type_ids = self.token_type_ids.expand(1, -1)
        buffered_token_type_ids = F.gather(buffered_token_type_ids, position_ids)
        token_type_ids = buffered_token_type_ids.expand(batch, length)
        inputs_embeds = self.word_embeddings(input_ids)
        token_type_embeddings = self.token_type_embeddings(token_type_ids)
        embeddings = inputs_embeds + token_type_embeddings
        position_embeddings = self.position_embeddings(position_ids)
        embeddings = embeddings + position_embeddings
        embeddings = self.LayerNorm(embeddings)
        embeddings = self.dropout(embeddings)
        return embeddings


class BertSelfAttention(Module):
    """Attention to all tokens."""

    def __init__(self, config: BertConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.head_size = config.hidden_size // config.num_attention_heads
        self.call = AttentionCall(
            scaling=self.head_size**-0.5, dropout=config.attention_probs_dropout_prob, causal=False
        )
        self.query = Linear(config.hidden_size, config.hidden_size)
        self.key = Linear(config.hidden_size, config.hidden_size)
        self.value = Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states: Tensor) -> Weighted:
        """Return the heads' results, side by side, and the weights of the tokens."""
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_size)
        query_layer = self.query(hidden_states).view(*hidden_shape).transpose(1, 2)
        key_layer = self.key(hidden_states).view(*hidden_shape).transpose(1, 2)
        value_layer = self.value(hidden_states).view(*hidden_shape).transpose(1, 2)
        attn_output, attn_weights = attend(
            self.options, self.call, query_layer, key_layer, value_layer, None, plain_attention
        )
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        return attn_output, attn_weights


class BertOutput(Module):
    """A product, added to the layer's input and normalized."""

    def __init__(self, config: BertConfig, inputs: int) -> None:
        super().__init__()
        self.dense = Linear(inputs, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        """Return the normalized sum."""
        hidden_states = self.dense(hidden_states)
        hidden_states = self.dropout(hidden_states)
        hidden_states = self.LayerNorm(hidden_states + input_tensor)
        return hidden_states


class BertAttention(Module):
    """Attention and its product."""

    def __init__(self, config: BertConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.self = BertSelfAttention(config, options)
        self.output = BertOutput(config, config.hidden_size)

    def forward(self, hidden_states: Tensor) -> Weighted:
        """Return the layer's output, and the weights of the tokens."""
        attention_output, attn_weights = self.self(hidden_states)
        attention_output = self.output(attention_output, hidden_states)
        return attention_output, attn_weights


class BertIntermediate(Module):
    """A product and an activation."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intermediate_size)
        self.intermediate_act_fn = Activation(config.hidden_act)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the activation."""
        hidden_states = self.dense(hidden_states)
        hidden_states = self.intermediate_act_fn(hidden_states)
        return hidden_states


class BertLayer(Module):
    """Attention and two products, with a norm after each."""

    def __init__(self, config: BertConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.attention = BertAttention(config, options)
        self.intermediate = BertIntermediate(config)
        self.output = BertOutput(config, config.intermediate_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        self_attention_output, _ = self.attention(hidden_states)
        attention_output = self_attention_output
        intermediate_output = self.intermediate(attention_output)
        layer_output = self.output(intermediate_output, attention_output)
        return layer_output


class BertEncoder(Module):
    """The layers."""

    def __init__(self, config: BertConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.layer = [BertLayer(config, options) for _ in range(config.num_hidden_layers)]

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the last layer's output."""
        for layer in self.layer:
            hidden_states = layer(hidden_states)
        return hidden_states


class BertModel(Module):
    """Embeddings and layers."""

    def __init__(self, config: BertConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config, options)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the features of all tokens."""
        embedding_output = self.embeddings(input_ids)
        return self.encoder(embedding_output)


class BertPredictionHeadTransform(Module):
    """A product, an activation and a norm before the output matrix."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size)
        self.transform_act_fn = Activation(config.hidden_act)
        self.LayerNorm = LayerNorm(config.hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the features."""
        hidden_states = self.dense(hidden_states)
        hidden_states = self.transform_act_fn(hidden_states)
        hidden_states = self.LayerNorm(hidden_states)
        return hidden_states


class BertLMPredictionHead(Module):
    """The scores of words; with a tied matrix the bias has two names."""

    def __init__(self, config: BertConfig, words: Parameter | None) -> None:
        super().__init__()
        self.transform = BertPredictionHeadTransform(config)
        self.bias = Parameter((config.vocab_size,))
        self.decoder = Linear(
            config.hidden_size, config.vocab_size, weight=words, bias=True if words is None else self.bias
        )

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the scores of all words."""
        hidden_states = self.transform(hidden_states)
        hidden_states = self.decoder(hidden_states)
        return hidden_states


class BertOnlyMLMHead(Module):
    """The head of masked words."""

    def __init__(self, config: BertConfig, words: Parameter | None) -> None:
        super().__init__()
        self.predictions = BertLMPredictionHead(config, words)

    def forward(self, sequence_output: Tensor) -> Tensor:
        """Return the scores of all words."""
        return self.predictions(sequence_output)


class BertForMaskedLM(TracedModel):
    """The model with its head; every token has a label."""

    def __init__(self, config: BertConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.bert = BertModel(config, self.options)
        words = self.bert.embeddings.word_embeddings.weight
        self.cls = BertOnlyMLMHead(config, words if config.tie_word_embeddings else None)

    def forward(self, input_ids: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        sequence_output = self.bert(input_ids)
        if self.options.loss != "whole":
            predictions = self.cls.predictions
            hidden_states = predictions.transform(sequence_output)
            decoder = predictions.decoder
            head = Head(decoder, decoder.weight, decoder.bias)
            return parted_loss(self.options, head, hidden_states, labels, shift=False)
        prediction_scores = self.cls(sequence_output)
        return whole_loss(prediction_scores, labels, shift=False, upcast=False)


ARCHITECTURES = (Architecture("BertForMaskedLM", "bert", BertConfig, BertForMaskedLM),)
