"""Regressions that CSWAP compares its own with (Sec. V-C): scikit-learn's, with default parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.gpu_codecs.time_model import CodecTiming, Fit


def sklearn(module: str) -> Any:
    """Import a module of scikit-learn.

    Raises
    ------
    BuddysimError
        if scikit-learn is not installed
    """
    try:
        return import_module(f"sklearn.{module}")
    except ImportError:
        raise BuddysimError("scikit-learn is missing: expected it installed (pip install 'buddysim[ml]')") from None


@dataclass(frozen=True)
class FittedRegressor:
    """Regression of scikit-learn on size (MiB) and sparsity, standardised; times in milliseconds."""

    pipeline: Any

    def predict(self, byte_count: int, sparsity: float) -> float:
        """Return the predicted picoseconds."""
        return float(self.pipeline.predict([[byte_count / 2**20, sparsity]])[0]) * 1e9


def _fit(regressor: Any, rows: Sequence[CodecTiming]) -> FittedRegressor:
    pipeline = sklearn("pipeline").make_pipeline(sklearn("preprocessing").StandardScaler(), regressor)
    pipeline.fit([[row.byte_count / 2**20, row.sparsity] for row in rows], np.array([r.time_ps / 1e9 for r in rows]))
    return FittedRegressor(pipeline)


def regressions() -> dict[str, Fit]:
    """Return Bayesian regression, support vector machine and decision tree, by the paper's names."""
    return {
        "BR": lambda rows: _fit(sklearn("linear_model").BayesianRidge(), rows),
        "SVM": lambda rows: _fit(sklearn("svm").SVR(), rows),
        "DT": lambda rows: _fit(sklearn("tree").DecisionTreeRegressor(random_state=0), rows),
    }
