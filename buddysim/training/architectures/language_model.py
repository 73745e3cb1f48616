"""What all models have in common: their configuration, what it leaves open, their inputs, their loss."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.architectures.blocks.loss import Head, parted_loss, whole_loss
from buddysim.training.architectures.model_config import ModelConfig
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions

DEFAULT_SEQUENCE = 2048


@dataclass(frozen=True)
class InputShape:
    """An input of a training step.

    Attributes
    ----------
    shape : with the batch
    dtype : ``int64`` for token numbers and labels, ``float`` for the number format of the weights
    """

    shape: tuple[int, ...]
    dtype: str = "int64"


class TracedModel(Module):
    """A model with its loss.

    Parameters
    ----------
    config : keys of its ``config.json``
    options : what these leave open

    Raises
    ------
    BuddysimError
        a sequence, an attention or a loss that the class doesn't have
    """

    #: The kinds of attention that the class offers; the last one is taken where the options name none.
    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("eager", "efficient", "flash")
    #: Whether the loss is of words, which may be computed in parts.
    WORDS: ClassVar[bool] = True
    #: Whether a sequence may hold several documents, by the positions that are given with it.
    PACKED: ClassVar[bool] = False
    #: Whether a mask of padding may be given.
    PADDED: ClassVar[bool] = False
    #: Whether layers have experts.
    EXPERTS: ClassVar[bool] = False

    def __init__(self, config: ModelConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = replace(options, attention=self._attention_of(options))
        self.sequence = self.sequence_of(config, options.sequence)
        self.check_options(options)

    def check_options(self, options: ConfigOptions) -> None:
        """Refuse what the class doesn't have.

        Raises
        ------
        BuddysimError
            a loss in parts, packed documents, padding, or tokens of experts
        """
        name = type(self).__name__
        if options.loss != "whole" and not self.WORDS:
            raise BuddysimError(f"loss {options.loss}: expected whole: {name} has one label for each sample")
        if options.packed > 1 and not self.PACKED:
            raise BuddysimError(f"packed {options.packed}: expected 1: {name} attends to all of a sequence")
        if options.padding and not self.PADDED:
            raise BuddysimError(f"padding {options.padding!r}: expected 0: no mask of {name} is simulated")
        for option, value in (
            ("expert_skew", options.expert_skew or None),
            ("expert_capacity", options.expert_capacity),
        ):
            if value is not None and not self.EXPERTS:
                raise BuddysimError(f"{option} {value}: expected none: {name} has no experts")
        if 1 < options.packed > self.sequence:
            raise BuddysimError(f"packed {options.packed}: expected at most the {self.sequence} tokens of a sequence")

    @classmethod
    def _attention_of(cls, options: ConfigOptions) -> Attention:
        fused = "efficient" in cls.ATTENTIONS
        if options.attention is None:
            return "sdpa" if options.padding and fused else cls.ATTENTIONS[-1]
        if options.attention == "flash" and options.padding:
            raise BuddysimError("attention flash: expected sdpa, efficient or eager: it takes no mask of padding")
        if options.attention not in cls.ATTENTIONS and not (fused and options.attention == "sdpa"):
            offered = ", ".join(cls.ATTENTIONS)
            raise BuddysimError(
                f"attention {options.attention}: expected one of {offered}: {cls.__name__} has no other"
            )
        return options.attention

    @classmethod
    def sequence_of(cls, config: ModelConfig, requested: int | None) -> int:
        """Tokens of a sequence.

        Raises
        ------
        BuddysimError
            more than the model has positions for
        """
        longest = config.max_positions
        if requested is None:
            return min(DEFAULT_SEQUENCE, longest or DEFAULT_SEQUENCE)
        if longest is not None and requested > longest:
            raise BuddysimError(f"sequence {requested}: expected at most {longest}, the positions that the model has")
        return requested

    def recording(self) -> AbstractContextManager[None]:
        """Return what is around a step that is recorded."""
        return nullcontext()

    def facts(self) -> Mapping[str, str]:
        """Return what a screen says of the model, by name."""
        return {}

    def compiled_region(self, scope: str) -> str | None:
        """Return what a module is compiled with under ``compile``, by its scope; None where it runs eagerly."""
        return ""

    def input_shapes(self, batch: int) -> Mapping[str, InputShape]:
        """The inputs of a step, by the names that `forward` gives them."""
        tokens = InputShape((batch, self.sequence))
        shapes = {"input_ids": tokens, "labels": tokens}
        if self.options.padding:
            shapes["attention_mask"] = tokens
        return {**shapes, "position_ids": tokens} if self.options.packed > 1 else shapes


class CausalModel(TracedModel):
    """A decoder with an output matrix: each token predicts the next."""

    lm_head: Linear | None

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm."""
        raise NotImplementedError

    def padded_states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return these features of a batch with a mask of padding, where the class takes one."""
        raise NotImplementedError

    def logits(self, hidden_states: Tensor) -> Tensor:
        """Return the scores of all words."""
        assert self.lm_head is not None
        return self.lm_head(hidden_states)

    def head(self) -> Head:
        """Return the output matrix, for losses that are computed in parts."""
        assert self.lm_head is not None
        return Head(self.logits, self.lm_head.weight)

    def forward(
        self,
        input_ids: Tensor,
        labels: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the loss.

        Parameters
        ----------
        position_ids : of packed documents, each from 0; of one document if not given
        attention_mask : 1 for each token, 0 for padding; of a batch without padding if not given
        """
        if attention_mask is None:
            hidden_states = self.hidden_states(input_ids, position_ids)
        else:
            hidden_states = self.padded_states(input_ids, attention_mask)
        hidden_states = hidden_states[:, 0:, :]
        if self.options.loss != "whole":
            return parted_loss(self.options, self.head(), hidden_states, labels, shift=True)
        logits = self.logits(hidden_states)
        return whole_loss(logits, labels, shift=True)
