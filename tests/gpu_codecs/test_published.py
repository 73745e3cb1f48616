"""Published rates: contents of the file, and times by hand."""

from __future__ import annotations

import pytest

from buddysim.gpu_codecs.published import both_ways_ms, rates


def test_every_codec_has_both_directions() -> None:
    assert set(rates()) == {"LZ4", "Cascaded", "Bitcomp", "ANS"}
    for codec, of in rates().items():
        assert set(of) == {"compression", "decompression"}, codec
        assert {len(numbers) for numbers in of.values()} == {10}
        assert min(map(min, of.values())) > 1


def test_times_by_hand() -> None:
    time_range = both_ways_ms("LZ4", 10**9)
    # The slowest pair is 6.5 and 21.8 GB/s, the fastest 96 and 321.9.
    assert time_range.max == pytest.approx(1000 / 6.5 + 1000 / 21.8)
    assert time_range.min == pytest.approx(min(1000 / 96 + 1000 / 321.9, 1000 / 127.8 + 1000 / 274.6))
    assert time_range.min < time_range.median < time_range.max
