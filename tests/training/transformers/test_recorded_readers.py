"""The package's own models against transformers' classes as the package records them: two ways, one tape."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from buddysim.training.architectures.read_config import content_of  # noqa: E402
from buddysim.training.options.config_options import ConfigOptions  # noqa: E402
from buddysim.training.recorded_step.from_config import network_from_config  # noqa: E402
from buddysim.training.recorded_step.library_model import LibraryNetwork  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.compared import differences_of, peak_of_tape, saved_of_tape  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("recipe", ["fp32", "amp-bf16"])
@pytest.mark.parametrize("name", configs.CONFIGS)
def test_a_reader_and_the_recorded_class_have_one_tape(name: str, recipe: str) -> None:
    """With weights in bf16 a class that isn't cast as a whole has rotary frequencies and DeepSeek's routers in fp32."""
    content = {**configs.CONFIGS[name], "architectures": [name]}
    attention = "eager" if name in configs.EAGER_ONLY else "sdpa"
    options: dict[str, Any] = {"recipe": recipe, "sequence": configs.tokens(name), "attention": attention}
    read = network_from_config(content, **options)
    recorded = LibraryNetwork(content_of(content), ConfigOptions(**options))
    assert read.parameters == recorded.parameters
    own, other = (network.at(configs.BATCH).tape for network in (read, recorded))
    assert list(differences_of(saved_of_tape(other), saved_of_tape(own))) == []
    assert peak_of_tape(own) == peak_of_tape(other)
