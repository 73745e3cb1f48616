"""The class of transformers that a configuration names.

Code that a file names (``auto_map``) isn't run: the class is one of those that transformers itself lists for the file's
``model_type``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import transformers
from transformers.models.auto import configuration_auto, modeling_auto

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import misspelling_hint, shortened
from buddysim.training.architectures.model_config import LARGEST_DEPTH, dequantised_of, shown
from buddysim.training.architectures.read_config import UnreadConfig
from buddysim.training.recorded_step.library_errors import one_line

#: transformers' lists of classes, by what a head is for; a file without a class gets the first that its type has.
HEADS: Mapping[str, tuple[str, ...]] = {
    "causal": ("CAUSAL_LM",),
    "masked": ("MASKED_LM",),
    "sequence-to-sequence": ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ"),
    "image-text": ("IMAGE_TEXT_TO_TEXT",),
    "classification": ("SEQUENCE_CLASSIFICATION", "IMAGE_CLASSIFICATION"),
    "base": ("",),
}
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
    with one_line(where):
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
    with one_line(f"{where}: transformers' configuration of {model_type} refuses it"):
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
