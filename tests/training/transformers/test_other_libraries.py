"""torchtune's and LitGPT's Llama against modules of PyTorch that compute the same: saved tensors and peaks."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from buddysim.training.architectures.read_config import read_config  # noqa: E402
from buddysim.training.autograd import Tape  # noqa: E402
from buddysim.training.autograd.dtypes import bfloat16, float32  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.options.config_options import ConfigOptions  # noqa: E402
from tests.training.transformers import other_libraries  # noqa: E402
from tests.training.transformers.compared import (  # noqa: E402
    differences_of,
    events_of_measured,
    events_of_tape,
    first_difference,
    peak_of_tape,
    saved_of_measured,
    saved_of_tape,
)
from tests.training.transformers.measured import measure  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]

BATCH, TOKENS = 3, 10
#: The number of labels, one element, which counts as a number of the host where PyTorch runs on the CPU.
_COUNT = "('DivBackward0', 'other', (), 'int64'"
CASES = {
    "torchtune, whole loss": (("TransformerDecoder", "torchtune"), "whole", lambda: other_libraries.Torchtune()),
    "torchtune, parts": (("TransformerDecoder", "torchtune"), "chunked:3", lambda: other_libraries.Torchtune(3)),
    "litgpt": (("GPT", "litgpt"), "whole", other_libraries.LitGPT),
}


def recorded(architecture: str, model_type: str, loss: str, recipe: str) -> Tape:
    tied = model_type == "torchtune"
    config = {**other_libraries.CONFIG, "architectures": [architecture], "model_type": model_type}
    read = read_config({**config, "tie_word_embeddings": tied})
    own = bfloat16 if recipe == "bf16" else float32
    with Tape(own) as tape:
        model = read.architecture.model(
            read.keys, ConfigOptions(sequence=TOKENS, recipe=recipe, attention="flash", loss=loss)
        )
        inputs = [tape.input((BATCH, TOKENS), label=name) for name in ("input_ids", "labels")]
        with tape.in_phase("forward"):
            result = model(*inputs)
        result.backward()
        del result
    return tape


@pytest.mark.parametrize("recipe", ["fp32", "bf16"])
@pytest.mark.parametrize("case", CASES)
def test_a_step_is_as_measured(case: str, recipe: str) -> None:
    (architecture, model_type), loss, make = CASES[case]
    dtype: Any = torch.bfloat16 if recipe == "bf16" else torch.float32
    model = make().to(dtype)
    for module in model.modules():
        if hasattr(module, "cache"):  # torchtune keeps the cache of positions in fp32
            module.cache = module.cache.float()
            module.theta = module.theta.float()
    numbers = torch.randint(0, other_libraries.WORDS, (BATCH, TOKENS))
    with cuda_rules("flash"):
        measured = measure(model, {"input_ids": numbers, "labels": numbers.clone()}, steps=1)
    tape = recorded(architecture, model_type, loss, recipe)
    differences = [one for one in differences_of(saved_of_measured(measured), saved_of_tape(tape)) if _COUNT not in one]
    assert differences == []
    assert first_difference(events_of_measured(measured), events_of_tape(tape)) == ""
    assert peak_of_tape(tape) == max(measured.curve())
