"""The typed reading of a model's ``config.json``: keys that all architectures share, and errors of one line.

Every architecture has a class of its own with the keys that it reads and the defaults of transformers' class of that
name (transformers 5.24). Keys that decide a model's size have no default here: `save_pretrained` writes them always, so
a file without one is damaged, and transformers would silently take the size of some published model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

LARGEST_SIZE = 1 << 20
LARGEST_VOCABULARY = 1 << 24
LARGEST_DEPTH = 1024
LARGEST_POSITIONS = 1 << 24

Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
Vocabulary = Annotated[int, Field(ge=1, le=LARGEST_VOCABULARY)]
Depth = Annotated[int, Field(ge=1, le=LARGEST_DEPTH)]
Positions = Annotated[int, Field(ge=1, le=LARGEST_POSITIONS)]
Probability = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0, le=1e30)]
LayerType = Literal["full_attention", "sliding_attention"]
ActivationName = Literal[
    "gelu",
    "gelu_fast",
    "gelu_new",
    "gelu_python",
    "gelu_pytorch_tanh",
    "linear",
    "quick_gelu",
    "relu",
    "relu2",
    "sigmoid",
    "silu",
    "swish",
    "tanh",
]
Dtype = Literal["float32", "bfloat16", "float16"]

#: Keys that change what is computed in a way that no architecture here has; their other values are refused.
_REFUSED: dict[str, tuple[object, ...]] = {
    "per_layer_config": (None,),
    "pruned_heads": (None, {}),
    "chunk_size_feed_forward": (None, 0),
    "add_cross_attention": (None, False),
}


#: Formats of weights on file that transformers casts to the file's dtype, to train them (``dequantize=True`` of
#: `FineGrainedFP8Config` and `Mxfp4Config`).
DEQUANTISED = ("fp8", "mxfp4")


def dequantised_of(content: Mapping[str, Any]) -> str | None:
    """Return the format that a file's weights have before they are trained; None where they aren't quantised.

    Raises
    ------
    PydanticCustomError
        a format that is not dequantised
    """
    quantised = content.get("quantization_config")
    method = quantised.get("quant_method") if isinstance(quantised, Mapping) else None
    if quantised is not None and method not in DEQUANTISED:
        named = " or ".join(shown(one) for one in DEQUANTISED)
        raise problem("quantization_config", f"null, or quant_method {named} (nothing else is simulated)", quantised)
    return method


class ModelConfig(BaseModel):
    """What every ``config.json`` has; frozen. Keys that the size and the memory of a model don't depend on are ignored.

    Attributes
    ----------
    dtype : number format of the weights on file; None where the file names none
    tie_word_embeddings : the output matrix is the embedding's
    quantization_config : format that the weights have on file, if that is not what is trained: its ``quant_method``
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, validate_default=False)

    #: Other spellings of keys, ``attribute_map`` of transformers' class.
    ALIASES: ClassVar[Mapping[str, str]] = {}
    #: Keys whose other values are refused, of this architecture alone.
    REFUSED: ClassVar[Mapping[str, tuple[object, ...]]] = {}

    dtype: Dtype | None = None
    tie_word_embeddings: bool = False
    quantization_config: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _own_spellings(cls, content: dict[str, Any]) -> dict[str, Any]:
        """Rename other spellings; refuse two values for one key, and what isn't simulated."""
        own = dict(content)
        for other, name in {"torch_dtype": "dtype", **cls.ALIASES}.items():
            if other not in own:
                continue
            value = own.pop(other)
            if own.get(name) is not None and value is not None and own[name] != value:
                raise problem(other, f"{name} {shortened(own[name])}, which the file has too", value)
            if own.get(name) is None:
                own[name] = value
        if own.get("dtype") == "auto":
            own["dtype"] = None
        elif isinstance(own.get("dtype"), str):
            own["dtype"] = own["dtype"].removeprefix("torch.")
        for name, accepted in {**_REFUSED, **cls.REFUSED}.items():
            if name in own and own[name] not in accepted:
                expected = " or ".join(shown(value) for value in accepted)
                raise problem(name, f"{expected} (nothing else is simulated)", own[name])
        return {**own, "quantization_config": dequantised_of(own)}

    @property
    def max_positions(self) -> int | None:
        """Tokens of the longest sequence; None where the architecture sets no limit."""
        return None

    def check(self) -> None:
        """Check rules between keys.

        Raises
        ------
        PydanticCustomError
            made by `problem`
        """

    @model_validator(mode="after")
    def _checked(self) -> ModelConfig:
        self.check()
        return self


def problem(name: str, expected: str, value: object) -> PydanticCustomError:
    """Make the error of a key: ``NAME: expected EXPECTED, found VALUE``, the value as JSON has it."""
    return _problem(name, expected, shown(value))


def _problem(name: str, expected: str, actual: str) -> PydanticCustomError:
    return PydanticCustomError("config", "{text}", {"text": f"{name}: expected {expected}, found {actual}"})


def check_multiple(total_name: str, total: int, divisor_name: str, divisor: int) -> None:
    """Refuse a size that another one doesn't divide: heads that don't divide the features."""
    if total % divisor:
        raise problem(total_name, f"a multiple of {divisor_name} {divisor}", total)


def check_layer_types(layer_types: Sequence[str] | None, layers: int, window: int | None) -> None:
    """Refuse a list of attention kinds of another length, and a sliding window without a width."""
    if layer_types is None:
        return
    if len(layer_types) != layers:
        raise _problem(
            "layer_types", f"a name for each of {layers} layers (num_hidden_layers)", f"{len(layer_types)} names"
        )
    if "sliding_attention" in layer_types and window is None:
        raise problem("sliding_window", "the tokens of a window, as layer_types has sliding_attention", None)


def check_padding(pad_token_id: int | None, vocabulary: int) -> None:
    """Refuse a padding token outside the vocabulary, as PyTorch's embedding does."""
    if pad_token_id is not None and not -vocabulary <= pad_token_id < vocabulary:
        raise problem("pad_token_id", f"below vocab_size {vocabulary}", pad_token_id)


def shown(value: object) -> str:
    """A value as JSON spells it, cut to fit a line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return shortened(value)


def error_line(where: str, problems: Sequence[ErrorDetails], names: Mapping[str, object]) -> BuddysimError:
    """Return the first problem of a configuration as one line.

    Parameters
    ----------
    where : the file's name, or another name of the source
    problems : of the reading, as pydantic describes them
    names : the keys that the configuration has, for the nearest name of a missing one
    """
    text = _text(problems[0], names)
    more = len(problems) - 1
    return BuddysimError(f"{where}: {text}{f' (and {more} more)' if more else ''}")


_EXPECTED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def _text(details: ErrorDetails, names: Mapping[str, object]) -> str:
    if details["type"] == "config":
        return details["msg"]
    key = ".".join(str(part) for part in details["loc"] if not str(part).startswith(("function-", "constrained-")))
    if details["type"] == "missing":
        similar = [name for name in names if name not in _COMMON]
        return f"{key}: expected a value, found no such key{hint(key, similar)}"
    context = details.get("ctx", {})
    expected = _EXPECTED.get(details["type"])
    if expected is None and "expected" in context:
        expected = f"one of {context['expected']}"
    if expected is None:
        expected = _limits(context) or details["msg"].lower()
    return f"{key}: expected {expected}, found {shown(details['input'])}"


_COMMON = frozenset({"architectures", "model_type", "transformers_version", "use_cache", "torch_dtype", "dtype"})


def _limits(context: Mapping[str, Any]) -> str:
    signs = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    return " and ".join(
        f"{sign} {context[name]:.15g}" if math.isfinite(context[name]) else sign
        for name, sign in signs.items()
        if name in context
    )
