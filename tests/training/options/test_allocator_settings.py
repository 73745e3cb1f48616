"""Settings are read as PyTorch reads them, and every mistake gets one line."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.caching_allocator import AllocatorSettings

MIB = 1 << 20


def test_pytorchs_own_example() -> None:
    """The text and the values of PyTorch's test (``c10/test/core/AllocatorConfig_test.cpp``)."""
    settings = AllocatorSettings.parse(
        "max_split_size_mb:40,max_non_split_rounding_mb:30,garbage_collection_threshold:0.5,"
        "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1],expandable_segments:True,"
        "pinned_use_background_threads:True"
    )
    assert settings.max_split_size == 40 * MIB
    assert settings.max_non_split_rounding == 30 * MIB
    assert settings.garbage_collection_threshold == 0.5
    assert settings.roundup_power2_divisions == (8,) * 7 + (2, 4, 2, 4) + (1,) * 5
    assert settings.expandable_segments


@pytest.mark.parametrize(
    "text",
    [
        "",
        "expandable_segments:True",
        "max_split_size_mb:128,large_segment_size_mb:64",
        "roundup_power2_divisions:4,garbage_collection_threshold:0.8,per_process_memory_fraction:0.5",
    ],
)
def test_a_text_of_its_settings_gives_them_back(text: str) -> None:
    settings = AllocatorSettings.parse(text)
    assert AllocatorSettings.parse(settings.text()) == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("expandable_segment:True", "expandable_segments"),
        ("expandable_segments:yes", "True or False"),
        ("expandable_segments", "NAME:VALUE"),
        ("max_split_size_mb:19", "at least the size of large segments, 20"),
        ("max_split_size_mb:32,large_segment_size_mb:40", "at least the size of large segments, 40"),
        ("max_split_size_mb:1e9", "an integer"),
        ("garbage_collection_threshold:1.5", "above 0 and below 1"),
        ("garbage_collection_threshold:nan", "above 0 and below 1"),
        ("roundup_power2_divisions:3", "a power of two"),
        ("roundup_power2_divisions:[256:3]", "powers of two"),
        ("roundup_power2_divisions:[256:2", "powers of two"),
        ("roundup_power2_divisions:[]", "powers of two"),
        ("backend:cudaMallocAsync", "not simulated"),
        ("max_split_size_mb:40 expandable_segments:True", "an integer"),
        (":::,,[", "expected one of max_split_size_mb"),
    ],
)
def test_a_mistake_gets_one_line(text: str, message: str) -> None:
    with pytest.raises(BuddysimError) as error:
        AllocatorSettings.parse(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
