"""Extrapolated and synthetic sizes equal those of the reference models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.buddy import Distribution
from buddysim.buddy.entry_sizes import draw_classes, fill_unsampled
from buddysim.compress import STUDY_CLASSES
from tests.reference.buddy import ref_entry_sizes

classes = st.lists(st.one_of(st.just(15), st.integers(0, 7)), max_size=80)


@st.composite
def by_page(draw: st.DrawFn) -> list[int]:
    """Generate pages of 4 entries, each sampled or not."""
    page = st.one_of(st.just([15] * 4), st.lists(st.integers(0, 7), min_size=4, max_size=4))
    last = st.lists(st.one_of(st.just(15), st.integers(0, 7)), max_size=3)
    return [number for page in draw(st.lists(page, max_size=20)) for number in page] + draw(last)


@given(st.one_of(classes, by_page()), st.sampled_from([1, 2, 4, 7, 64]))
def test_fill_equals_its_reference(some: list[int], page_entries: int) -> None:
    filled = np.array(some, dtype=np.uint8)
    count = fill_unsampled(filled, page_entries)
    assert (filled.tolist(), count) == ref_entry_sizes.fill_unsampled(some, page_entries)


def test_fill_by_hand() -> None:
    pages = [*(15, 15), *(1, 2), *(15, 15), *(15, 15), *(15, 15), *(3, 15), 15]
    filled = np.array(pages, dtype=np.uint8)
    assert fill_unsampled(filled, 2) == 10
    assert filled.tolist() == [1, 2, 1, 2, 1, 2, 1, 2, 3, 3, 3, 3, 3]


def test_a_short_last_page_is_repeated_where_it_is_the_nearest() -> None:
    filled = np.array([15] * 8 + [4, 5], dtype=np.uint8)
    assert fill_unsampled(filled, 4) == 8
    assert filled.tolist() == [4, 5] * 5


weights = st.lists(st.integers(0, 400), min_size=8, max_size=8).filter(any)


@given(
    weights,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32),
    st.integers(0, 2**31),
    st.sampled_from([0, 500, 30000, 65536]),
    st.sampled_from([0, 500, 30000, 65536]),
)
def test_sampling_equals_its_reference(
    weights: list[int], seed: int, allocation: int, first: int, outlier_pages: int, outlier_entries: int
) -> None:
    ends = [int(end) for end in np.cumsum(weights) * 2**32 // sum(weights)]
    classes = np.empty(130, dtype=np.uint8)
    draw_classes(classes, np.array(ends, dtype=np.uint64), seed, allocation, first, outlier_pages, outlier_entries)
    expected = [
        ref_entry_sizes.draw_class(first + i, ends, seed, allocation, outlier_pages, outlier_entries)
        for i in range(130)
    ]
    assert classes.tolist() == expected


def test_draw_never_changes() -> None:
    """Synthetic sizes of a seed stay the same in every version."""
    classes = np.empty(256, dtype=np.uint8)
    Distribution.load("isca20-dl").write(classes, 42, 9)
    assert np.bincount(classes, minlength=8).tolist() == [3, 1, 1, 1, 237, 0, 1, 12]


@pytest.mark.parametrize("name", ["isca20-hpc", "isca20-dl"])
def test_any_window_gives_the_same_classes(name: str) -> None:
    distribution = Distribution.load(name)
    whole = np.empty(5000, dtype=np.uint8)
    distribution.write(whole, 3, 7)
    for first, end in ((0, 1), (63, 65), (100, 4000), (4999, 5000)):
        window = np.empty(end - first, dtype=np.uint8)
        distribution.write(window, 3, 7, first)
        np.testing.assert_array_equal(window, whole[first:end])


@pytest.mark.parametrize("name", ["isca20-hpc", "isca20-dl"])
def test_fractions_over_many_allocations_are_those_of_the_name(name: str) -> None:
    distribution = Distribution.load(name)
    counts = np.zeros(8)
    n, entries = 20000, 128
    for allocation in range(n):
        classes = np.empty(entries, dtype=np.uint8)
        distribution.write(classes, 1, allocation)
        counts += np.bincount(classes, minlength=8)
    # Each allocation has one random class: the standard error is that of n draws.
    error = np.sqrt(np.array(distribution.fractions) / n)
    assert np.all(np.abs(counts / (n * entries) - distribution.fractions) < 4 * error)


@pytest.mark.parametrize(("name", "least"), [("isca20-hpc", 0.99), ("isca20-dl", 0.85)])
def test_allocations_are_homogeneous_and_pages_clustered(name: str, least: float) -> None:
    distribution = Distribution.load(name)
    dominant, in_page_of_other = [], []
    for allocation in range(50):
        classes = np.empty(64 * 400, dtype=np.uint8)
        distribution.write(classes, 5, allocation)
        counts = np.bincount(classes, minlength=8)
        dominant.append(counts.max() / len(classes))
        pages = classes.reshape(-1, 64)
        of_page = np.array([np.bincount(page, minlength=8).argmax() for page in pages])
        outliers = pages[of_page != counts.argmax()]
        if len(outliers):
            in_page_of_other.append(np.mean(outliers == of_page[of_page != counts.argmax()][:, np.newaxis]))
    assert np.mean(dominant) > least
    assert np.mean(in_page_of_other) > 0.9


def test_different_seeds_and_allocations_differ() -> None:
    distribution = Distribution.load("isca20-dl")
    classes = [np.empty(4096, dtype=np.uint8) for _ in range(3)]
    for out, (seed, allocation) in zip(classes, ((0, 0), (1, 0), (0, 1)), strict=True):
        distribution.write(out, seed, allocation)
    assert len({out.tobytes() for out in classes}) == 3


@pytest.mark.parametrize("size", STUDY_CLASSES)
def test_uniform(size: int) -> None:
    classes = np.empty(1000, dtype=np.uint8)
    Distribution.load(f"uniform:{size}").write(classes, 0, 0)
    assert set(classes.tolist()) == {STUDY_CLASSES.index(size)}


def test_named_constants() -> None:
    classes = np.empty(1000, dtype=np.uint8)
    Distribution.load("all-zero").write(classes, 0, 0)
    assert not classes.any()
    Distribution.load("incompressible").write(classes, 0, 0)
    assert (classes == 7).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("isca20-hcp", "unknown, expected one of isca20-hpc, isca20-dl, .*nearest: isca20-hpc"),
        ("uniform:33", "'33' is no size class, expected one of 0, 8"),
        ("uniform:", "'' is no size class"),
        ("", "unknown"),
    ],
)
def test_unknown_distributions_are_refused(name: str, message: str) -> None:
    with pytest.raises(BuddysimError, match=message):
        Distribution.load(name)


def test_the_document_has_every_named_distribution() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "size-distributions.md").read_text(encoding="utf-8")
    assert [name for name in Distribution.names() if f"`{name}`" not in text] == []
    rows = re.findall(r"^\| `([\w-]+)` \|((?: [\d.]+ % \|){10})$", text, re.MULTILINE)
    assert [name for name, _ in rows] == ["isca20-hpc", "isca20-dl"]
    for name, cells in rows:
        fractions = [float(fraction) for fraction in re.findall(r"[\d.]+", cells)]
        assert fractions[:8] == [pytest.approx(weight / 10) for weight in Distribution.load(name).weights]
        outliers = [Distribution.load(name).outlier_pages, Distribution.load(name).outlier_entries]
        assert fractions[8:] == [pytest.approx(100 * count / 65536, abs=0.005) for count in outliers]
