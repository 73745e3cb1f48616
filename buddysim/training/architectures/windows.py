"""Sliding windows as Qwen's configurations have them: a width, a switch, and the layers that use it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from buddysim.training.architectures.model_config import (
    LARGEST_DEPTH,
    LARGEST_POSITIONS,
    LayerType,
    check_layer_types,
    check_padding,
)
from buddysim.training.architectures.rotary_config import GroupedConfig

Window = Annotated[int, Field(ge=1, le=LARGEST_POSITIONS)]


class WindowedConfig(GroupedConfig):
    """A decoder of which some layers attend to the last tokens alone (`Qwen2Config`, `Qwen3Config`)."""

    use_sliding_window: bool = False
    sliding_window: Window | None = 4096
    max_window_layers: Annotated[int, Field(ge=0, le=LARGEST_DEPTH)] = 28
    layer_types: list[LayerType] | None = None
    pad_token_id: int | None = None

    @property
    def window(self) -> int | None:
        """Tokens of a window; None where the switch is off."""
        return self.sliding_window if self.use_sliding_window else None

    @property
    def windows(self) -> list[int | None]:
        """The window of each layer."""
        if self.layer_types is not None:
            return [self.window if kind == "sliding_attention" else None for kind in self.layer_types]
        return [self.window if index >= self.max_window_layers else None for index in range(self.num_hidden_layers)]

    @property
    def masks(self) -> list[int | None]:
        """The windows of the masks, in the order in which they are made."""
        sliding = [window for window in self.windows if window is not None]
        return [None, *sliding[:1]]

    def check(self) -> None:
        """Refuse attention kinds that don't match the layers, and a padding token outside the vocabulary."""
        super().check()
        check_layer_types(self.layer_types, self.num_hidden_layers, self.window)
        check_padding(self.pad_token_id, self.vocab_size)


class AlternatingConfig(GroupedConfig):
    """A decoder whose windows alternate with full attention unless ``layer_types`` says otherwise."""

    sliding_window: Window | None = None
    layer_types: list[LayerType] | None = None
    pad_token_id: int | None = None

    @property
    def windows(self) -> list[int | None]:
        """The window of each layer."""
        if self.layer_types is not None:
            return [self.sliding_window if kind == "sliding_attention" else None for kind in self.layer_types]
        return [None if index % 2 else self.sliding_window for index in range(self.num_hidden_layers)]

    def check(self) -> None:
        """Refuse what transformers refuses."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)
        check_layer_types(
            self.layer_types or ("sliding_attention",) * self.num_hidden_layers,
            self.num_hidden_layers,
            self.sliding_window,
        )
