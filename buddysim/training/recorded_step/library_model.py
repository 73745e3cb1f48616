"""A model of transformers from its ``config.json``, where no architecture of this package reads it.

transformers' own class is built on PyTorch's ``meta`` device, and its training step is recorded as that of any module.
Code that a file names (``auto_map``) isn't run: the class is one of those that transformers itself lists for the file's
``model_type``.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import torch
import transformers
from transformers.models.auto import configuration_auto, modeling_auto

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import misspelling_hint, shortened
from buddysim.training.architectures.language_model import DEFAULT_SEQUENCE
from buddysim.training.architectures.model_config import LARGEST_DEPTH, dequantised_of, shown
from buddysim.training.architectures.read_config import UnreadConfig
from buddysim.training.networks.from_torch.traced_network import TracedNetwork
from buddysim.training.networks.graph import Network, Value
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.options.config_options import ConfigOptions

#: transformers' lists of classes, by what a head is for; a file without a class gets the first that its type has.
HEADS: Mapping[str, tuple[str, ...]] = {
    "causal": ("CAUSAL_LM",),
    "masked": ("MASKED_LM",),
    "sequence-to-sequence": ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ"),
    "image-text": ("IMAGE_TEXT_TO_TEXT",),
    "classification": ("SEQUENCE_CLASSIFICATION", "IMAGE_CLASSIFICATION"),
    "base": ("",),
}
_DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "amp-bf16": torch.float32, "bf16": torch.bfloat16}
#: What is simulated of the options of a configuration; the others change how a step runs.
_OPTIONS = ("sequence", "recipe", "attention", "alloc_conf", "head")
_LARGEST_LIST = 1 << 16
#: Keys that count layers: transformers makes lists of these before it makes a module.
_COUNTS = re.compile(r"(layer|depth|block)s?$")


@dataclass(frozen=True)
class LibraryClass:
    """A class of transformers, and the configuration to build it from.

    Attributes
    ----------
    head : of `HEADS`
    """

    cls: Any
    config: Any
    head: str


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
        with _one_line(f"{unread.where}: no inputs of {selected.cls.__name__} are known"):
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
        with _without_warnings():
            return super()._recorded(batch, optimizer)

    @cached_property
    def identity(self) -> str:
        """A text that is equal for equal configurations, the options left out."""
        return f"{self.name} {self.description} {self.module.config.to_json_string()}"


def find_class(unread: UnreadConfig, head: str | None) -> LibraryClass:
    """Return the class that a configuration names, or the one that its type has for a head.

    Raises
    ------
    BuddysimError
        a type or class that transformers hasn't, a head that the type hasn't, keys that its configuration refuses
    """
    content, where = unread.content, unread.where
    model_type, known = str(content["model_type"]), configuration_auto.CONFIG_MAPPING
    if model_type not in known:
        near = misspelling_hint(model_type, known, 0.8)
        own = " (the file's own code, auto_map, is not run)" if "auto_map" in content else ""
        raise BuddysimError(
            f"{where}: model_type: {shown(model_type)} is not in transformers {transformers.__version__}{own}{near}"
        )
    with _one_line(where):
        _check_sizes(where, content)
        dequantised_of(content)
    classes = [one for one in _classes(model_type) if head in (None, one[1])]
    named = content.get("architectures")
    named = named if isinstance(named, list) else [name for name, _ in classes]
    if not classes:
        heads = ", ".join(dict.fromkeys(its_head for _, its_head in _classes(model_type)))
        raise BuddysimError(f"head {head}: {model_type} of transformers has {heads}")
    listed = [one for one in classes if one[0] in named]
    if not listed and head is None:
        raise BuddysimError(
            f"{where}: architectures: {shortened(named[0])} is none of transformers' {model_type}: expected one of "
            f"{', '.join(dict.fromkeys(name for name, _ in classes))}"
        )
    name, its_head = (listed or classes)[0]
    with _one_line(f"{where}: transformers' configuration of {model_type} refuses it"):
        read = {key: value for key, value in content.items() if key != "quantization_config"}
        config, cls = known[model_type].from_dict(read), getattr(transformers, name)
        if not isinstance(config, cls.config_class):  # of a model of several: this class is its text model's
            config = config.get_text_config(decoder=its_head == "causal" or None)
    return LibraryClass(cls, config, its_head)


def _classes(model_type: str) -> Iterator[tuple[str, str]]:
    """The names of a type's classes, each with its head."""
    for head, lists in HEADS.items():
        for one in lists:
            mapping = "MODEL_MAPPING_NAMES" if not one else f"MODEL_FOR_{one}_MAPPING_NAMES"
            named = getattr(modeling_auto, mapping).get(model_type, ())
            for name in (named,) if isinstance(named, str) else named:
                yield name, head


def _check_sizes(where: str, content: Any, key: str = "") -> None:
    """Refuse numbers of layers that no model has, before anything is made of them."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            _check_sizes(where, value, str(name))
    elif isinstance(content, list):
        if len(content) > _LARGEST_LIST:
            raise BuddysimError(f"{where}: {key}: expected at most {_LARGEST_LIST} values, found {len(content)}")
        for value in content:
            _check_sizes(where, value, key)
    elif isinstance(content, int) and content > LARGEST_DEPTH and _COUNTS.search(key):
        raise BuddysimError(f"{where}: {key}: expected at most {LARGEST_DEPTH}, found {shown(content)}")


def built(unread: UnreadConfig, selected: LibraryClass, options: ConfigOptions, dtype: torch.dtype) -> torch.nn.Module:
    """Return the module, without memory."""
    selected.config.use_cache = False  # as transformers' Trainer sets it
    if selected.head == "classification" and getattr(selected.config, "pad_token_id", None) is None:
        selected.config.pad_token_id = 0
    fused = getattr(selected.cls, "_supports_sdpa", False)
    if options.attention not in (None, "eager") and not fused:
        raise BuddysimError(f"attention {options.attention}: expected eager: {selected.cls.__name__} has no other")
    attention = "sdpa" if fused and options.attention != "eager" else "eager"
    with _one_line(f"{unread.where}: {selected.cls.__name__} of transformers can't be built"), torch.device("meta"):
        module: torch.nn.Module = selected.cls._from_config(selected.config, dtype=dtype, attn_implementation=attention)
    return module


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


@contextmanager
def _one_line(problem: str) -> Iterator[None]:
    """Whatever transformers raises within is an error of one line."""
    try:
        with _without_warnings():
            yield
    except BuddysimError:
        raise
    except Exception as error:
        text = shortened(" ".join(str(error).split()), 200)[1:-1]
        raise BuddysimError(f"{problem}: {text or type(error).__name__}") from None


@contextmanager
def _without_warnings() -> Iterator[None]:
    """What transformers says within of a configuration or of inputs is not shown."""
    level = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        transformers.utils.logging.set_verbosity(level)
