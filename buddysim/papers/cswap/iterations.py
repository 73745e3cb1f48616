"""Iterations of the CSWAP paper's networks under its schemes, and its advisor's decisions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from buddysim.formats.activations import ActivationsFile
from buddysim.machine.training import TrainingMachine
from buddysim.papers.cswap.paper_networks import (
    BATCHES,
    BELOW,
    CSWAP,
    HOST,
    IMAGENET,
    LINK,
    NETWORKS,
    ORACLE,
    STATIC,
    ZOO,
    Case,
)
from buddysim.sweep.cached_results import Result, SavedResults
from buddysim.training import Network
from buddysim.training.contents.reduced_trainings import training_of
from buddysim.training.cost import CostModel
from buddysim.training.fit_check import allocate_tensors
from buddysim.training.iteration.build import build
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.iteration.schedule import schedule
from buddysim.training.named_network import load_network
from buddysim.training.request import make_options
from buddysim.training.schemes import cswap
from buddysim.training.schemes._links import link_rate
from buddysim.training.schemes.cswap import AdvisorInputs, CodecDecision

SIMULATED, PAPER = "simulated", "paper"
SOURCES = (SIMULATED, PAPER)
#: Schemes whose time depends on the codec's.
_TIMED = (STATIC, CSWAP)


def result(
    training: SavedResults, case: Case, label: str, scheme: str, codec_times: str = SIMULATED, **options: Any
) -> Result:
    """An iteration of a network in a panel of Fig. 6, with options of the scheme."""
    more = {**options, **({"codec_times": codec_times} if scheme in _TIMED else {})}
    name, batch = ZOO[case.dataset][label], BATCHES[case.machine, case.dataset][label]
    return training.result(name, batch, scheme, case.machine, link=LINK, **more)


def times_ms(training: SavedResults, case: Case, scheme: str, codec_times: str = SIMULATED) -> dict[str, float]:
    """The iteration's time of every network that fits without compression."""
    return {
        label: result(training, case, label, scheme, codec_times)["time_ms"]
        for label in NETWORKS
        if result(training, case, label, BELOW)["fits"] and not _left_out(case, label)
    }


def _left_out(case: Case, label: str) -> bool:
    return (case.panel, label) == ("6d", "Plain20")


def saved_percent(training: SavedResults, case: Case, codec_times: str = SIMULATED) -> dict[str, float]:
    """Return the training time that CSWAP saves relative to vDNN, per cent."""
    below, cswap_ms = times_ms(training, case, BELOW), times_ms(training, case, CSWAP, codec_times)
    return {label: 100 * (1 - cswap_ms[label] / below[label]) for label in cswap_ms}


def throughput(training: SavedResults, case: Case, over: str, codec_times: str = SIMULATED) -> dict[str, float]:
    """CSWAP's throughput above a scheme's, in per cent."""
    below, cswap_ms = times_ms(training, case, over), times_ms(training, case, CSWAP, codec_times)
    return {label: 100 * (below[label] / cswap_ms[label] - 1) for label in cswap_ms}


def normalised(training: SavedResults, case: Case, codec_times: str = SIMULATED) -> dict[str, dict[str, float]]:
    """Throughput over vDNN's, by scheme and network."""
    below = times_ms(training, case, BELOW)
    speedups = {}
    for scheme in (HOST, STATIC, CSWAP, ORACLE):
        cswap_ms = times_ms(training, case, scheme, codec_times)
        speedups[scheme] = {label: below[label] / cswap_ms[label] for label in cswap_ms}
    return speedups


@cache
def decisions(
    case: Case, label: str, codec_times: str = SIMULATED, epoch: float | None = None, codec: str = "zvc"
) -> list[CodecDecision]:
    """CSWAP's decisions, at an epoch of the network's training, or on average over it."""
    extra: dict[str, Any] = {"codec_times": codec_times, "epoch": epoch, "codec": codec}
    return cswap.decisions(_setting(case, label, make_options(link=LINK, **extra)), CSWAP)


def _setting(case: Case, label: str, options: TrainingOptions) -> AdvisorInputs:
    network, machine, cost = _loaded(case, label)
    return AdvisorInputs(network, BATCHES[case.machine, case.dataset][label], machine, cost, options)


@cache
def _loaded(case: Case, label: str) -> tuple[Network, TrainingMachine, CostModel]:
    machine = TrainingMachine.load(case.machine)
    return load_network(ZOO[case.dataset][label]), machine, CostModel.load(machine)


@cache
def regrets_ms(case: Case, label: str, codec_times: str = SIMULATED) -> dict[str, float]:
    """Return the added iteration time of each decision over its opposite, others fixed; below 0: it is correct."""
    setting = _setting(case, label, make_options(link=LINK, codec_times=codec_times))
    taken = decisions(case, label, codec_times)

    def time_ps(assumed_decisions: list[CodecDecision]) -> int:
        plan = cswap.plan_of(setting, CSWAP, assumed_decisions)
        program = build(setting.network, setting.batch, setting.cost, plan, link_rate(setting.machine, LINK))
        placement, _ = allocate_tensors(program, plan, setting.network, setting.machine, setting.options)
        return schedule(placement.program).time_ps

    here = time_ps(taken)
    return {
        one.layer.name: (here - time_ps([replace(o, compress=o.compress != (o is one)) for o in taken])) / 1e9
        for one in taken
    }


def accuracy_percent(case: Case, label: str, codec_times: str = SIMULATED) -> float:
    """Decisions that no flip would improve."""
    regrets = regrets_ms(case, label, codec_times)
    return 100 * sum(regret <= 0 for regret in regrets.values()) / len(regrets) if regrets else 100.0


def trained(label: str, dataset: str = IMAGENET) -> ActivationsFile:
    """The reduced training that a network's sparsities are from."""
    training = training_of(load_network(ZOO[dataset][label]))
    assert training is not None, label
    return training


def epochs(label: str) -> tuple[float, ...]:
    """Epochs of a network's training, from before the first iteration on."""
    return tuple(point.epoch for point in trained(label).points)


def training_text(*labels: str) -> str:
    """Return the trainings for captions: networks with widths and image sizes, data, epochs; no names: all."""
    used = {id(t): t for dataset in ZOO for label in labels or NETWORKS for t in [trained(label, dataset)]}
    made = [training.provenance for training in used.values()]
    networks = ", ".join(one["network"].partition(";")[0] for one in made)
    data, epochs = made[0]["data"].partition(", stand")[0], max(t.points[-1].epoch for t in used.values())
    return f"sparsities: buddysim's trainings, feature map by feature map: {networks}; {data}, {epochs:g} epochs"
