"""A model of transformers from its ``config.json``, where no architecture of this package reads it.

transformers' own class is built on PyTorch's ``meta`` device, and its forward pass recorded; from then on it is a model
as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any

import torch
import transformers

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.language_model import InputShape, TracedModel
from buddysim.training.architectures.model_config import dequantised_of
from buddysim.training.architectures.read_config import ReadConfig, UnreadConfig
from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.recorded_class.model import RecordedClass
from buddysim.training.recorded_class.modules import Mirror, RecordedModule
from buddysim.training.recorded_class.tracer import OWN_FORWARD
from buddysim.training.recorded_step.library_class import LibraryClass, find_class
from buddysim.training.recorded_step.library_errors import one_line, without_warnings
from buddysim.training.recorded_step.library_inputs import inputs_of


class LibraryKeys:
    """A configuration of transformers, with what is known of it without a module.

    Attributes
    ----------
    dtype : of the file's weights, of its text model where it has several
    quantization_config : format that the weights have before they are trained
    """

    def __init__(self, unread: UnreadConfig, selected: LibraryClass) -> None:
        self.unread, self.selected = unread, selected
        self.dtype = _dtype_of(unread.content)
        self.quantization_config = dequantised_of(unread.content)
        text = selected.config.get_text_config()
        longest = getattr(text, "max_position_embeddings", None)
        self.max_positions = longest if isinstance(longest, int) and longest > 0 else None
        self.recorded = cache(self._recorded)

    def model_dump_json(self) -> str:
        """Return the configuration as a text."""
        text: str = self.selected.config.to_json_string()
        return text

    def _recorded(self, dtype: str, attention: str | None, sequence: int | None) -> tuple[int | None, RecordedClass]:
        """Return tokens of a sequence, and the class, built once for these."""
        module = _built(self.unread, self.selected, attention, getattr(torch, dtype))
        with one_line(f"{self.unread.where}: no inputs of {self.selected.cls.__name__} are known"):
            tokens, samples = inputs_of(self.unread, self.selected, module, sequence)
        fused = "efficient" if attention == "efficient" else "flash"
        return tokens, RecordedClass(module, samples, _loss_of, fused)  # type: ignore[arg-type]


class LibraryModel(RecordedModule, TracedModel):
    """A class of transformers.

    Parameters
    ----------
    keys : the configuration
    options : what it leaves open
    """

    WORDS = False

    def __init__(self, keys: LibraryKeys, options: ConfigOptions) -> None:
        Module.__init__(self)
        fused = getattr(keys.selected.cls, "_supports_sdpa", False)
        if options.attention not in (None, "eager") and not fused:
            name = keys.selected.cls.__name__
            raise BuddysimError(f"attention {options.attention}: expected eager: {name} has no other")
        self.keys = keys
        self.options = replace(options, attention=options.attention or ("flash" if fused else "eager"))
        dtype = active_tape().default_dtype.name
        tokens, self.source = keys.recorded(dtype, self.options.attention, options.sequence)
        self.sequence = tokens  # type: ignore[assignment]  # None of images
        self.isolation = self.source.isolation
        self.check_options(options)
        adapters = options.adapters
        self.casts_back = adapters is not None and adapters.quantized and adapters.library == "peft"
        Mirror(self.isolation, self.source.trained).fill(self, self.source.module)

    def input_shapes(self, batch: int) -> Mapping[str, InputShape]:
        """The inputs of a step, by the names that `forward` gives them."""
        return {
            name: InputShape((batch, *one.shape), "float" if one.is_floating_point() else "int64")
            for name, one in self.source.samples.items()
        }

    def facts(self) -> Mapping[str, str]:
        """Return the head, and what was recorded."""
        inputs = ", ".join(
            f"{name} {'x'.join(map(str, one.shape)) or '1'}" for name, one in self.source.samples.items()
        )
        name = self.keys.selected.cls.__name__
        recorded = f"{name} of transformers {transformers.__version__} on {inputs}"
        return {"head": self.keys.selected.head, "recorded": recorded}

    def recording(self) -> AbstractContextManager[None]:
        """Return the context in which PyTorch's operators can be run by themselves."""
        return self.isolation.active()

    def forward(self, **inputs: Tensor) -> Tensor:  # type: ignore[override]
        """Return the loss."""
        autocast = active_tape().autocast
        dtype = None if autocast is None else getattr(torch, autocast.dtype.name)
        batch = next(iter(inputs.values())).shape[0]
        with self.isolation.active():
            with without_warnings():
                program = self.source.program(batch, dtype, self._casting_back())
            values: dict[str, Any] = dict(inputs)
            loss: Tensor = super().forward(**values, program=program)
        return loss

    def _casting_back(self) -> frozenset[str]:
        """Products with 4-bit weights of bitsandbytes, which return the number format of what they get."""
        if not self.casts_back:
            return frozenset()
        blocks = tuple(f"{path}." for path, _ in blocks_of(self))
        linear = (path for path, one in self.source.module.named_modules() if type(one) in OWN_FORWARD)
        return frozenset(path for path in linear if path.startswith(blocks))


def library_config(unread: UnreadConfig, head: str | None) -> ReadConfig:
    """Return the configuration of a class of transformers.

    Raises
    ------
    BuddysimError
        see `find_class`
    """
    selected = find_class(unread, head)
    architecture = Architecture(
        selected.cls.__name__,
        str(unread.content["model_type"]),
        LibraryKeys,  # type: ignore[arg-type]
        LibraryModel,
    )
    return ReadConfig(unread.name, architecture, LibraryKeys(unread, selected), unread)  # type: ignore[arg-type]


def _built(unread: UnreadConfig, selected: LibraryClass, attention: str | None, dtype: torch.dtype) -> torch.nn.Module:
    """Return the module, without memory."""
    selected.config.use_cache = False  # as transformers' Trainer sets it
    if selected.head == "classification" and getattr(selected.config, "pad_token_id", None) is None:
        selected.config.pad_token_id = 0
    implementation = "eager" if attention == "eager" else "sdpa"
    with one_line(f"{unread.where}: {selected.cls.__name__} of transformers can't be built"), torch.device("meta"):
        module: torch.nn.Module = selected.cls._from_config(
            selected.config, dtype=dtype, attn_implementation=implementation
        )
    return module


def _loss_of(output: Any) -> torch.Tensor:
    """Return the loss of a model's output, else the sum of the first tensor."""
    loss: torch.Tensor | None = output.get("loss")
    return loss if loss is not None else output[0].sum()


def _dtype_of(content: Mapping[str, Any]) -> str | None:
    of_text = content.get("text_config")
    for keys in (content, of_text if isinstance(of_text, Mapping) else {}):
        dtype = str(keys.get("dtype") or keys.get("torch_dtype") or "").removeprefix("torch.")
        if dtype:
            return dtype if dtype in ("bfloat16", "float16") else "float32"
    return None
