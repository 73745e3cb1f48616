"""A configuration without a reader here: what says so where transformers isn't installed, and which class has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.read_config import content_of
from buddysim.training.options.config_options import HEADS
from buddysim.training.recorded_step import from_config

CONFIGS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "transformers" / "configs.json").read_text(encoding="utf-8")
)
LLAMA = CONFIGS["LlamaForCausalLM"]


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"architectures": ["ArceeForCausalLM"], "model_type": "arcee"}, {}),
        ({"architectures": None, "model_type": "arcee"}, {}),
        ({}, {"head": "classification"}),
    ],
)
def test_without_transformers_the_extra_is_named(
    more: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_config, "find_spec", lambda name: None)
    with pytest.raises(BuddysimError) as caught:
        from_config.network_from_config({**LLAMA, **more}, **options)
    assert str(caught.value).endswith("pip install 'buddysim[transformers]'")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_class_has_a_reader_for_its_own_head_alone(name: str) -> None:
    unread = content_of({"architectures": [name], **CONFIGS[name]})
    heads = [head for head in HEADS if unread.has_reader(head)]
    assert len(heads) == 1
    assert unread.has_reader()
    read = from_config.network_from_config(unread.content, head=heads[0])
    assert read.description == name


def test_another_head_of_a_read_class_has_no_reader() -> None:
    assert not content_of({**LLAMA, "architectures": ["LlamaForSequenceClassification"]}).has_reader()
    assert not content_of({**LLAMA, "model_type": "internlm3"}).has_reader()
    assert content_of({**LLAMA, "architectures": None}).has_reader("causal")
    assert not content_of({**LLAMA, "architectures": None}).has_reader("base")
