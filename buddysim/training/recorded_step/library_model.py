"""A model of transformers from its ``config.json``, where no architecture of this package reads it.

transformers' own class is built on PyTorch's ``meta`` device, and its training step is recorded as that of any module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import torch
import transformers

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.model_config import dequantised_of
from buddysim.training.architectures.read_config import UnreadConfig
from buddysim.training.networks.from_torch.traced_network import TracedNetwork
from buddysim.training.networks.graph import Network, Value
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.recorded_step.library_class import LibraryClass, find_class
from buddysim.training.recorded_step.library_errors import one_line, without_warnings
from buddysim.training.recorded_step.library_inputs import inputs_of

_DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "amp-bf16": torch.float32, "bf16": torch.bfloat16}
#: What is simulated of the options of a configuration; the others change how a step runs.
_OPTIONS = ("sequence", "recipe", "attention", "alloc_conf", "head")


class LibraryNetwork(TracedNetwork):
    """A model that transformers builds from a configuration.

    Parameters
    ----------
    unread : the configuration
    options : what it leaves open; most aren't simulated on such a network
    """

    def __init__(self, unread: UnreadConfig, options: ConfigOptions) -> None:
        for name in options.changed():
            if name not in _OPTIONS:
                raise BuddysimError(f"{name}: {unread.name} is recorded from transformers' class: not simulated there")
        self.unread, self.config_options = unread, options
        selected = find_class(unread, options.head)
        self.number_formats = options.recipe or _recipe_of(unread.content)
        if self.number_formats not in _DTYPES:
            raise BuddysimError(
                f"recipe {self.number_formats}: {unread.name} is recorded from transformers' class: expected one of "
                f"{', '.join(_DTYPES)}"
            )
        module = built(unread, selected, options, _DTYPES[self.number_formats])
        with one_line(f"{unread.where}: no inputs of {selected.cls.__name__} are known"):
            self.sequence, inputs = inputs_of(unread, selected, module, options.sequence)
        super().__init__(
            module,
            inputs,
            unread.name,
            "amp-bf16" if self.number_formats == "amp-bf16" else "fp32",
            "efficient" if options.attention == "efficient" else "flash",
            loss_of,
        )
        self.precision = {"bf16": "bf16", "amp-bf16": "bf16"}.get(self.number_formats, self.number_formats)
        self.source = "config.json"
        self.head = selected.head

    @property
    def options(self) -> Mapping[str, Value]:  # type: ignore[override]
        """What the configuration leaves open, as it is simulated."""
        inputs = ", ".join(f"{name} {_text(one)}" for name, one in self.inputs.items())  # type: ignore[union-attr]
        values = {
            **asdict(self.config_options),
            "recipe": self.number_formats,
            "attention": self.module.config._attn_implementation.replace("sdpa", self.attention),
            "head": self.head,
            "sequence": self.sequence,
            "dequantised": dequantised_of(self.unread.content),
            "recorded": f"{self.description} of transformers {transformers.__version__} on {inputs}",
        }
        return {name: value for name, value in values.items() if value is not None}

    def with_options(self, changed: Mapping[str, Any]) -> Network:
        """Return the network with other options."""
        options = replace(self.config_options, **changed)
        return self if options == self.config_options else LibraryNetwork(self.unread, options)

    def _recorded(self, batch: int, optimizer: str) -> RecordedNetwork:
        with without_warnings():
            return super()._recorded(batch, optimizer)

    @cached_property
    def identity(self) -> str:
        """A text that is equal for equal configurations, the options left out."""
        return f"{self.name} {self.description} {self.module.config.to_json_string()}"


def built(unread: UnreadConfig, selected: LibraryClass, options: ConfigOptions, dtype: torch.dtype) -> torch.nn.Module:
    """Return the module, without memory."""
    selected.config.use_cache = False  # as transformers' Trainer sets it
    if selected.head == "classification" and getattr(selected.config, "pad_token_id", None) is None:
        selected.config.pad_token_id = 0
    fused = getattr(selected.cls, "_supports_sdpa", False)
    if options.attention not in (None, "eager") and not fused:
        raise BuddysimError(f"attention {options.attention}: expected eager: {selected.cls.__name__} has no other")
    attention = "sdpa" if fused and options.attention != "eager" else "eager"
    with one_line(f"{unread.where}: {selected.cls.__name__} of transformers can't be built"), torch.device("meta"):
        module: torch.nn.Module = selected.cls._from_config(selected.config, dtype=dtype, attn_implementation=attention)
    return module


def loss_of(output: Any) -> torch.Tensor:
    """Return the loss of a model's output, else the sum of the first tensor."""
    loss: torch.Tensor | None = output.get("loss")
    return loss if loss is not None else output[0].sum()


def _recipe_of(content: Mapping[str, Any]) -> str:
    """The recipe of a file's weights, of its text model where it has several; 16 bits are trained as bf16."""
    of_text = content.get("text_config")
    for keys in (content, of_text if isinstance(of_text, Mapping) else {}):
        dtype = str(keys.get("dtype") or keys.get("torch_dtype") or "").removeprefix("torch.")
        if dtype:
            return "bf16" if dtype in ("bfloat16", "float16") else "fp32"
    return "fp32"


def _text(sample: torch.Tensor) -> str:
    return "x".join(map(str, sample.shape)) or "1"
