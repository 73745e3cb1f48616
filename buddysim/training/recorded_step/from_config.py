"""A network from a model's configuration, as Hugging Face's ``config.json`` describes it.

The model of `training.architectures` runs one training step without data (`training.autograd`); its record becomes a
network of layers (`networks.recorded`). A record has one batch and one optimizer, so it is made when these are known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.garbage import collection_paused
from buddysim.base.option import field_options
from buddysim.base.signature import show_options
from buddysim.training import recipes
from buddysim.training.architectures.language_model import TracedModel
from buddysim.training.architectures.read_config import ReadConfig, UnreadConfig, content_of, parse_config
from buddysim.training.autograd import Tape
from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.networks.graph import Layer, Network, Value
from buddysim.training.networks.recorded.from_tape import network_from_tape
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.recipes import Recipe
from buddysim.training.recorded_step.run import record_step

_RECIPES: Mapping[str | None, str] = {"bfloat16": "bf16", "float16": "bf16", "float32": "fp32", None: "fp32"}


class ConfigNetwork(Network):
    """A model that a configuration describes.

    Parameters
    ----------
    config : the configuration
    options : what it leaves open

    Attributes
    ----------
    recipe : number formats, those of the configuration where the options name none
    """

    recorded = True

    def __init__(self, config: ReadConfig, options: ConfigOptions) -> None:
        self.config, self.config_options, self.name = config, options, config.name
        self.recipe = _recipe_of(config, options)
        self.precision = self.recipe.precision
        self.source = "config.json"
        self._at: tuple[int, str, RecordedNetwork] | None = None
        self.sequence: int | None = self.model.sequence
        self.description = config.architecture.name

    @property
    def options(self) -> Mapping[str, Value]:  # type: ignore[override]
        """What the configuration leaves open, as it is simulated."""
        model = self.model
        shown = {**asdict(self.config_options), "recipe": self.recipe.name, "attention": model.options.attention}
        shown["dequantised"] = self.config.keys.quantization_config
        shown |= {"sequence": self.sequence, **model.facts()}
        return {name: value for name, value in shown.items() if value is not None}

    @property
    def identity(self) -> str:
        """A text that is equal for equal configurations, the options left out."""
        keys = self.config.keys.model_dump_json()
        return f"{self.name} {self.config.architecture.name} {keys}"

    @cached_property
    def model(self) -> TracedModel:
        """The model without a step."""
        with Tape(self.recipe.weights):
            return self.config.architecture.model(self.config.keys, self.config_options)

    @property
    def layers(self) -> tuple[Layer, ...]:  # type: ignore[override]
        """The layers of a batch of one sample."""
        return self.at(1).layers

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return next(iter(self.model.input_shapes(1).values())).shape[1:]

    @property
    def parameters(self) -> int:
        """Weights and biases, each once."""
        return sum(one.numel() for one in self.model.parameters())

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each weight by its name in the state dict; one that several modules use by its first name."""
        return {name: one.shape for name, one in self.model.named_parameters()}

    def with_element_bytes(self, element_bytes: int) -> Network:
        """Return the network itself: its tensors have their own formats."""
        return self

    def with_options(self, changed: Mapping[str, Any]) -> Network:
        """Return the network with other options."""
        options = replace(self.config_options, **changed)
        return self if options == self.config_options else _network_of(self.config.unread, options)

    def at(self, batch: int, optimizer: str = "none") -> RecordedNetwork:
        """Return the layers of one training step, and its record; the last one is held."""
        if self._at is None or self._at[:2] != (batch, optimizer):
            self._at = None
            self._at = batch, optimizer, self._recorded(batch, optimizer)
        return self._at[2]

    @collection_paused()
    def _recorded(self, batch: int, optimizer: str, saving: SavingRules | None = None) -> RecordedNetwork:
        tape = record_step(self.config, self.config_options, self.recipe, batch, optimizer, saving=saving)

        @lru_cache(maxsize=1)
        def record_with(rules: SavingRules) -> RecordedNetwork:
            return self._recorded(batch, optimizer, rules)

        return network_from_tape(
            tape, self.name, batch, self.precision, self.source, self.description,
            options=self.options, parameter_shapes=self.parameter_shapes(),
            blocks=len(list(blocks_of(self.model))), record_with=record_with,
        )  # fmt: skip


@within_budget
def network_from_config(config: Mapping[str, Any] | str | os.PathLike[str], **options: Any) -> Network:
    """Return the network that a model's configuration describes: of an architecture here, else of transformers' class.

    Parameters
    ----------
    config : the path of a ``config.json``, or its content

    Raises
    ------
    BuddysimError
        a configuration that can't be read, lacks keys or contradicts itself; a wrong option
    """
    known = field_options(ConfigOptions)
    for name in options:
        if name not in known:
            raise BuddysimError(f"option {name}: expected one of {', '.join(known)}")
    return _network_of(content_of(config), ConfigOptions(**options))


def _network_of(unread: UnreadConfig, options: ConfigOptions) -> Network:
    return ConfigNetwork(_read(unread, options.head), options)


def _read(unread: UnreadConfig, head: str | None) -> ReadConfig:
    if unread.has_reader(head):
        return parse_config(unread)
    if find_spec("transformers") is None:
        extra = "transformers' class of it is recorded with pip install 'buddysim[transformers]'"
        if head is not None:
            raise BuddysimError(f"{unread.where}: head {head}: {extra}")
        try:
            return parse_config(unread)
        except BuddysimError as error:
            raise BuddysimError(f"{error}; {extra}") from None
    from buddysim.training.recorded_step.library_model import library_config

    return library_config(unread, head)


show_options(network_from_config, field_options(ConfigOptions))


def _recipe_of(config: ReadConfig, options: ConfigOptions) -> Recipe:
    """The recipe that options name, else that of a configuration's weights; 16 bits are trained as bf16."""
    return recipes.REGISTRY.find(options.recipe or _RECIPES[config.keys.dtype])
