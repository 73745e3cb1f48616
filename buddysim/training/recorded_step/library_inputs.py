"""What one sample of a class of transformers is: tokens, images, frames of sound, and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.language_model import DEFAULT_SEQUENCE
from buddysim.training.architectures.read_config import UnreadConfig
from buddysim.training.recorded_step.library_class import LibraryClass


def inputs_of(
    unread: UnreadConfig, selected: LibraryClass, module: Any, sequence: int | None
) -> tuple[int | None, Mapping[str, torch.Tensor]]:
    """Return tokens of a sequence, and the inputs of one sample: what the class reads first, and labels.

    Raises
    ------
    BuddysimError
        a class that reads something else; a sequence for a class without one, or longer than its positions
    """
    main, config, dtype = module.main_input_name, selected.config, module.dtype
    if main == "input_ids":
        text = config.get_text_config()
        longest = getattr(text, "max_position_embeddings", None)
        longest = longest if isinstance(longest, int) and longest > 0 else None
        tokens = _within(longest, sequence or min(DEFAULT_SEQUENCE, longest or DEFAULT_SEQUENCE))
        numbers = torch.zeros(tokens, dtype=torch.long)
        labels = torch.zeros((), dtype=torch.long) if selected.head == "classification" else numbers
        if selected.head == "base":
            extra = {"decoder_input_ids": numbers} if config.is_encoder_decoder else {}
            return tokens, {"input_ids": numbers, **extra}
        return tokens, {"input_ids": numbers, "labels": labels}
    if main == "input_features" and hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions"):
        frames = torch.zeros((config.num_mel_bins, 2 * config.max_source_positions), dtype=dtype, device="meta")
        tokens = _within(config.max_target_positions, sequence or config.max_target_positions)
        numbers = torch.zeros(tokens, dtype=torch.long)
        return tokens, {main: frames, ("decoder_input_ids" if selected.head == "base" else "labels"): numbers}
    vision = getattr(config, "vision_config", config)
    if main == "pixel_values" and isinstance(getattr(vision, "image_size", None), int):
        if sequence is not None:
            raise BuddysimError(f"sequence {sequence}: expected none: {selected.cls.__name__} reads images")
        extents = (getattr(vision, "num_channels", 3), vision.image_size, vision.image_size)
        images = {main: torch.zeros(extents, dtype=dtype, device="meta")}
        return None, images if selected.head == "base" else {**images, "labels": torch.zeros((), dtype=torch.long)}
    raise BuddysimError(
        f"{unread.where}: {selected.cls.__name__} reads {main}: expected a class that reads tokens (input_ids), images "
        "of one size (pixel_values) or frames of sound (input_features)"
    )


def _within(longest: int | None, tokens: int) -> int:
    """Return the tokens of a sequence, refused beyond the model's positions, where it has a number of them."""
    if longest is not None and tokens > longest:
        raise BuddysimError(f"sequence {tokens}: expected at most {longest}, the positions that the model has")
    return tokens
