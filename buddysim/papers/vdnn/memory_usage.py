"""GPU memory in use, as the vDNN paper's Fig. 11 counts it (Rhu et al., MICRO 2016), and its saving.

The paper leaves four rules open; `CountingRule` has an option for each, and the text supports its defaults:

- the baseline provisions the entire network, classification layers too (Sec. V-A, II-C); use is that of the feature
  layers, which are all that vDNN manages (Sec. III, IV-A);
- the average is over layers, whose use Fig. 5 shows and Sec. V-A refers to;
- weights count once in use: Fig. 2 lists W, X, dX, dY and the workspace, Fig. 5 one W per layer. The baseline has their
  gradients too, as the difference of its totals for VGG-416 and VGG-16, which have the same workspace, implies;
- FFTs are offered for feature maps on which they were timed (docs/explanation/layer-times.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

from buddysim.papers.vdnn.paper_networks import SIX
from buddysim.sweep.cached_results import Result, SavedResults

POLICIES = {"all-m": "all(m)", "all-p": "all(p)", "conv-p": "conv(p)", "dyn": "dyn"}


@dataclass(frozen=True)
class CountingRule:
    """Rules for counting memory in use, and its baseline.

    Attributes
    ----------
    entire : the baseline is that of the entire network; False: of its feature layers
    over_layers : the average is over layers; False: over time
    gradients : weights' gradients count as in use
    timed_fft : FFTs are offered only for feature maps on which they were timed; False: for all that cuDNN takes
    """

    entire: bool = True
    over_layers: bool = True
    gradients: bool = False
    timed_fft: bool = True


TAKEN = CountingRule()
#: The other reading of each point, by the name that the page gives to the one taken.
OTHERS = {
    "the baseline of the entire network": {"entire": False},
    "averages over layers": {"over_layers": False},
    "weights counted once": {"gradients": True},
    "no FFT at 224 x 224": {"timed_fft": False},
}
NONE_TAKEN = CountingRule(entire=False, over_layers=False, gradients=True, timed_fft=False)


def weight_bytes(result: Result) -> int:
    """Weights of the feature layers; their gradients are as large."""
    return int(sum(row["weights_bytes"] for row in result["per_layer"] if row["part"] == "features"))


def used_bytes(result: Result, kind: str, rule: CountingRule = TAKEN) -> int:
    """Bytes of the feature layers in use under a policy of vDNN; kind: ``"peak"`` or ``"average"``."""
    mean = "mean_over_steps" if rule.over_layers else "time_mean"
    counted = mean if kind == "average" else kind
    return int(result[f"feature_layers.memory.{counted}_bytes"]) - (0 if rule.gradients else weight_bytes(result))


def saved_percent(result: Result, kind: str, rule: CountingRule = TAKEN) -> float:
    """Return the percentage of memory saved relative to the baseline; kind: ``"peak"`` or ``"average"``."""
    baseline = result["memory.baseline_bytes" if rule.entire else "feature_layers.memory.baseline_bytes"]
    return float(100 * (1 - used_bytes(result, kind, rule) / baseline))


def outcome(training: SavedResults, name: str, batch: int, scheme: str, rule: CountingRule = TAKEN) -> Result:
    """The result of a scheme with the algorithms that a reading has."""
    return training.result(name, batch, scheme) if rule.timed_fft else result_with_every_fft(name, batch, scheme)


@cache
def result_with_every_fft(name: str, batch: int, scheme: str) -> Result:
    """The result of a scheme where FFTs are offered for feature maps of any size that cuDNN takes."""
    from buddysim.training import simulate
    from buddysim.training.cost import CostModel

    cost = CostModel.load("titan-x")
    every = CostModel(cost.machine, cost.library, cost.calibration, cost.shared, largest_fft=1 << 20)
    return simulate(name, batch, "titan-x", scheme, cost=every).to_dict()


def saved_by_network(training: SavedResults, policy: str, kind: str, rule: CountingRule = TAKEN) -> dict[str, float]:
    """The saving of each of the six networks, in per cent."""
    return {
        label: saved_percent(outcome(training, name, batch, f"vdnn-{policy}", rule), kind, rule)
        for label, name, batch in SIX
    }


def mean_saving(training: SavedResults, policy: str, kind: str, rule: CountingRule = TAKEN) -> float:
    """The mean over the six networks."""
    return fmean(saved_by_network(training, policy, kind, rule).values())


def readings() -> dict[str, CountingRule]:
    """The readings that the page compares: none of the four points as taken, each alone, all of them."""
    rules = {"none of them": NONE_TAKEN}
    for name, other in OTHERS.items():
        (field,) = other
        rules[f"{name} alone"] = replace(NONE_TAKEN, **{field: getattr(TAKEN, field)})
    rules["all four"] = TAKEN
    for name, other in OTHERS.items():
        rules[f"all but {name}"] = replace(TAKEN, **other)
    return rules


def weights_once(training: SavedResults, policy: str) -> str:
    """Maximum and average saved in per cent, if the baseline too had no gradients of weights: ``"69 / 92"``."""
    percents_by_kind: dict[str, list[float]] = {"peak": [], "average": []}
    for _, name, batch in SIX:
        result = training.result(name, batch, f"vdnn-{policy}")
        baseline = result["memory.baseline_bytes"] - sum(row["weights_bytes"] for row in result["per_layer"])
        for kind, percents in percents_by_kind.items():
            percents.append(100 * (1 - used_bytes(result, kind) / baseline))
    return " / ".join(f"{fmean(percents):.0f}" for percents in percents_by_kind.values())
