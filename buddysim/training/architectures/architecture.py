"""An architecture: the name of a class of transformers, the keys of its configuration, its model."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.architectures.language_model import TracedModel
from buddysim.training.architectures.model_config import ModelConfig


@dataclass(frozen=True)
class Architecture:
    """A model that a ``config.json`` can describe.

    Attributes
    ----------
    name : as ``architectures`` of the file has it, ``"LlamaForCausalLM"``
    model_type : as ``model_type`` of the file has it, ``"llama"``
    config : its keys
    model : builds it from its keys and what they leave open
    other_types : that files with this class have too
    """

    name: str
    model_type: str
    config: type[ModelConfig]
    model: type[TracedModel]
    other_types: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """All that ``model_type`` of a file may be."""
        return (self.model_type, *self.other_types)

    @property
    def head(self) -> str:
        """What its head is for, of `config_options.HEADS`."""
        ends = {
            "ForMaskedLM": "masked",
            "ForConditionalGeneration": "sequence-to-sequence",
            "ForImageClassification": "classification",
        }
        return next((head for end, head in ends.items() if self.name.endswith(end)), "causal")
