"""The time model: values by hand, and errors compared with baseline models."""

from __future__ import annotations

import sys

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.gpu_codecs.regressors import regressions
from buddysim.gpu_codecs.time_model import CodecTiming, fit_bandwidth, fit_linear, relative_absolute_error

SIZES, SPARSITIES = (20, 50, 100, 200), [percent / 100 for percent in range(20, 81, 5)]


def rows(time: object) -> list[CodecTiming]:
    return [CodecTiming(size, s, round(time(size, s))) for size in SIZES for s in SPARSITIES]  # type: ignore[operator]


def test_a_plane_is_found_again() -> None:
    model = fit_linear(rows(lambda size, s: 1000 + 30 * size - 500 * s), 3)
    assert model.predict(75, 0.33) == pytest.approx(1000 + 30 * 75 - 500 * 0.33, abs=1)


def test_more_sub_models_follow_a_bend() -> None:
    bent = rows(lambda size, s: size * 1e6 * (1 + abs(s - 0.5)))
    errors = [relative_absolute_error(fit_linear(bent, n), bent) for n in (1, 2, 4)]
    assert errors[0] > errors[1] > errors[2]


def test_only_the_papers_range_is_fitted() -> None:
    usual = rows(lambda size, s: 100 * size)
    assert fit_linear([*usual, CodecTiming(100, 0.9, 10**9)], 2) == fit_linear(usual, 2)


def test_errors_by_hand() -> None:
    seen = [CodecTiming(10, 0.5, 100), CodecTiming(20, 0.5, 300)]
    model = fit_bandwidth(seen)  # 30 bytes in 400 ps
    assert model.predict(15, 0.2) == pytest.approx(200)
    # Off by 33.3 and 33.3; 100 and 100 from the mean.
    assert relative_absolute_error(model, seen) == pytest.approx(1 / 3)


def test_too_few_rows() -> None:
    with pytest.raises(BuddysimError, match="sub-model 1 of 1: 2 rows: expected three or more"):
        fit_linear([CodecTiming(1, 0.5, 1), CodecTiming(2, 0.5, 2)], 1)


@pytest.mark.slow
def test_the_other_regressions_fit() -> None:
    pytest.importorskip("sklearn")
    plane = rows(lambda size, s: 1e9 * (1 + size / 20 - s))
    errors = {name: relative_absolute_error(fit(plane), plane) for name, fit in regressions().items()}
    assert set(errors) == {"BR", "SVM", "DT"}
    assert errors["BR"] < 0.01
    assert all(error < 0.5 for error in errors.values())


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    monkeypatch.setitem(sys.modules, "sklearn.pipeline", None)
    with pytest.raises(BuddysimError, match=r"pip install 'buddysim\[ml\]'"):
        regressions()["BR"]([CodecTiming(1, 0.5, 1)])
