"""The keys of rotary embeddings: base, scaling, the rotated part of a head.

transformers 5 writes them as one object, ``rope_parameters``; earlier versions as ``rope_theta``, ``rope_scaling`` and
``partial_rotary_factor``, which most files on the Hub still have. Both are read, into one object.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from buddysim.training.architectures.model_config import (
    Depth,
    ModelConfig,
    Positions,
    Positive,
    Size,
    Vocabulary,
    check_multiple,
    problem,
)

RotaryKind = Literal["default", "linear", "dynamic", "yarn", "longrope", "llama3"]
#: Keys without which a kind of scaling can't be computed (transformers, `modeling_rope_utils`).
_REQUIRED: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}


class RotaryParameters(BaseModel):
    """Rotary embeddings: each pair of a head's features is rotated by an angle proportional to the position.

    Attributes
    ----------
    rope_type : how the angles are scaled for sequences longer than those of the training
    rope_theta : base of the frequencies
    partial_rotary_factor : rotated part of a head's features
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    rope_type: RotaryKind = "default"
    rope_theta: Positive = 10_000.0
    partial_rotary_factor: Annotated[float, Field(gt=0, le=1)] = 1.0
    factor: Annotated[float, Field(ge=1, le=1e9)] | None = None
    low_freq_factor: Positive | None = None
    high_freq_factor: Positive | None = None
    original_max_position_embeddings: Positions | None = None
    attention_factor: Annotated[float, Field(ge=0, le=1e9)] | None = None
    short_factor: list[float] | None = None
    long_factor: list[float] | None = None

    @model_validator(mode="after")
    def _complete(self) -> RotaryParameters:
        for name in _REQUIRED[self.rope_type]:
            if getattr(self, name) is None:
                raise problem(f"rope_parameters.{name}", f"a value, as rope_type is {self.rope_type}", None)
        return self


class RotaryConfig(ModelConfig):
    """A decoder with rotary embeddings: the keys that these all have."""

    #: Rotated part of a head's features where the file doesn't say.
    PARTIAL: ClassVar[float] = 1.0

    vocab_size: Vocabulary
    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Depth
    num_attention_heads: Size
    max_position_embeddings: Positions = 2048
    rope_parameters: RotaryParameters = RotaryParameters()
    attention_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _one_object(cls, content: dict[str, Any]) -> dict[str, Any]:
        own = dict(content)
        scaling, parameters = own.pop("rope_scaling", None), own.get("rope_parameters")
        for name, value in (("rope_scaling", scaling), ("rope_parameters", parameters)):
            if value is not None and not isinstance(value, dict):
                raise problem(name, "an object", value)
        if scaling and parameters and scaling != parameters:
            raise problem("rope_scaling", "no such key next to rope_parameters, which says otherwise", scaling)
        merged = dict(scaling or parameters or {})
        merged.setdefault("rope_type", merged.pop("type", "default"))
        outer = {"rope_theta": "rope_theta", "rotary_emb_base": "rope_theta"}
        outer |= {"partial_rotary_factor": "partial_rotary_factor", "rotary_pct": "partial_rotary_factor"}
        for key, name in outer.items():
            value = own.pop(key, None)
            if value is not None and merged.get(name, value) != value:
                raise problem(key, f"{merged[name]!r}, the {name} of rope_parameters", value)
            if value is not None:
                merged[name] = value
        if merged.get("partial_rotary_factor") is None:
            merged["partial_rotary_factor"] = cls.PARTIAL
        own["rope_parameters"] = cls._adjusted(merged, own)
        return own

    @classmethod
    def _adjusted(cls, parameters: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters as this architecture reads them."""
        return parameters

    @property
    def max_positions(self) -> int | None:
        """Tokens of the longest sequence."""
        return self.max_position_embeddings

    @property
    def head_features(self) -> int:
        """Features of a head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def rotated_features(self) -> int:
        """Rotated features of a head."""
        return int(self.head_features * self.rope_parameters.partial_rotary_factor)

    def check(self) -> None:
        """Refuse heads that don't divide the features, and an odd number of rotated ones."""
        super().check()
        rotated = self.rotated_features
        if rotated % 2 or rotated < 2:
            raise problem("rope_parameters", "an even number of rotated features of a head", rotated)
        for name in ("short_factor", "long_factor"):
            factors = getattr(self.rope_parameters, name)
            if self.rope_parameters.rope_type == "longrope" and len(factors) != rotated // 2:
                raise problem(f"rope_parameters.{name}", f"{rotated // 2} factors", len(factors))


class GroupedConfig(RotaryConfig):
    """A decoder with rotary embeddings whose query heads may have keys and values in groups."""

    #: The features divide by the heads even where ``head_dim`` is in the file, as transformers checks.
    DIVIDED: ClassVar[bool] = False

    num_key_value_heads: Size | None = None
    head_dim: Size | None = None
    rms_norm_eps: Annotated[float, Field(gt=0, lt=1)] = 1e-6

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_features(self) -> int:
        """Features of a head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def heads_divide(self) -> bool:
        """Whether the features are a multiple of the heads."""
        return self.head_dim is None or self.DIVIDED

    def check(self) -> None:
        """Refuse heads that don't divide."""
        if self.heads_divide:
            check_multiple("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        check_multiple("num_attention_heads", self.num_attention_heads, "num_key_value_heads", self.key_value_heads)
        super().check()
