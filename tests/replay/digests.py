"""Results of the replay engine on many machines and traces, as a hash for each run and key.

``python -m tests.replay.digests FILE`` writes them; ``--against FILE`` compares with those of another commit and names
each run and key that differs. A refactoring that says "results unchanged" runs it before and after. ``--quick`` takes
a part of the runs. The runs: shipped traces on every preset under every scheme, every value of every choice and switch
alone and in pairs within a section, synthetic workloads, random cases (`random_cases`), perturbed runs in threads.
With BUDDYSIM_SIMD=plain, code without vector instructions runs, one line at a time.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import registry
from buddysim.machine import Machine
from buddysim.machine.model import keys
from buddysim.machine.section import value_of
from buddysim.replay.schemes import REGISTRY
from buddysim.synthetic import make_trace
from buddysim.synthetic.workload_classes import REGISTRY as SYNTHETIC
from buddysim.trace import open_trace
from tests.replay.random_cases import random_case, write_case

TRACES = Path(__file__).parents[2] / "traces"
BASE = "p100-nvlink2"
#: Its tensors alone are 2 GB of entries: a run takes a minute.
LONG = ("xz",)
SMALL = ("lud256", "bitonic-sort", "bfs-volta")
#: Parts of a result that differ from run to run or from installation to installation.
VOLATILE = ("provenance",)
OWN_PROVENANCE = ("machine_checksum", "assumptions", "targets", "sensitivity")

Run = tuple[str, Callable[[], dict[str, Any]]]


def _replay(trace: str, machine: str, changes: dict[str, Any], scheme: str, **options: Any) -> dict[str, Any]:
    loaded = Machine.load(machine).with_overrides(changes)
    return buddysim.simulate(TRACES / f"{trace}.bin", loaded, scheme, **options).to_dict()


def _synthetic(workload: str, scheme: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.bin")
        make_trace(workload, path, {})
        return buddysim.simulate(path, BASE, scheme, sensitivity="none").to_dict()


def _random(seed: int, scheme: str, model: str) -> dict[str, Any]:
    case = random_case(seed, scheme, model)
    with tempfile.TemporaryDirectory() as folder, open_trace(write_case(case, Path(folder, "trace.bin"))) as trace:
        options: dict[str, Any] = {"queueing": True, "sensitivity": "none"} | case.options
        return buddysim.simulate(trace, case.make_machine(), scheme, case.make_targets(trace), **options).to_dict()


def _choices() -> dict[str, list[Any]]:
    """Every value of every key that is a switch or a name, by key."""
    choices: dict[str, list[Any]] = {}
    for key, field in keys():
        value = value_of(field)
        if value.kind == "switch":
            choices[key] = [False, True]
        elif value.kind == "name":
            choices[key] = list(registry(value.members).names() if value.members else value.allowed.split(", "))
    return choices


def _settings() -> Iterator[dict[str, Any]]:
    """Every choice alone, then every pair within a section."""
    choices = _choices()
    for key, values in choices.items():
        for value in values:
            yield {key: value}
    for (one, ones), (other, others) in itertools.combinations(choices.items(), 2):
        if one.partition(".")[0] == other.partition(".")[0]:
            for value, second in itertools.product(ones, others):
                yield {one: value, other: second}


def runs(quick: bool) -> Iterator[Run]:
    """Name and run, in a fixed order."""
    names = [path.stem for path in sorted(TRACES.glob("*.bin")) if path.stem not in LONG]
    schemes = REGISTRY.names()
    for trace, machine, scheme in itertools.product(names, [BASE] if quick else Machine.presets(), schemes):
        yield f"{trace} {machine} {scheme}", partial(_replay, trace, machine, {}, scheme, sensitivity="none")
    for trace, machine in itertools.product(SMALL, [BASE] if quick else Machine.presets()):
        yield f"{trace} {machine} queueing", partial(_replay, trace, machine, {}, "buddy", queueing=True)
    for changes, trace, scheme in itertools.product(_settings(), SMALL, ("buddy", "bandwidth-compression")):
        if not quick or (len(changes) == 1 and trace == SMALL[0]):
            text = " ".join(f"{key}={value}" for key, value in changes.items())
            yield f"{trace} {text} {scheme}", partial(_replay, trace, BASE, changes, scheme, sensitivity="none")
    if not quick:
        for workload, scheme in itertools.product(SYNTHETIC.names(), ("buddy", "unified-memory")):
            if workload != "scale":  # its size is its purpose
                yield f"synthetic {workload} {scheme}", partial(_synthetic, workload, scheme)
    for seed, scheme, model in itertools.product(range(40 if quick else 500), schemes, ("simple", "banked")):
        yield f"random {seed} {scheme} {model}", partial(_random, 5000 + seed, scheme, model)


def digest_of(run: Run) -> tuple[str, dict[str, str]]:
    """The run's name and a hash for each key of its result, or the message of a refused run."""
    name, simulate = run
    try:
        result = simulate()
    except BuddysimError as error:
        return name, {"refused": str(error).replace(tempfile.gettempdir(), "")}
    stable = {key: value for key, value in result.items() if not key.startswith(VOLATILE)}
    stable |= {f"provenance.{key}": result["provenance"][key] for key in OWN_PROVENANCE}
    return name, {
        key: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]
        for key, value in stable.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replay.digests", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="file to write")
    parser.add_argument("--against", type=Path, help="file of another commit to compare with")
    parser.add_argument("--quick", action="store_true", help="a part of the runs")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    digests: dict[str, dict[str, str]] = {}
    with multiprocessing.get_context("fork").Pool(args.workers) as pool:
        for number, (name, keys) in enumerate(pool.imap(digest_of, runs(args.quick), 8), 1):
            digests[name] = keys
            if number % 500 == 0:
                print(f"{number} runs", file=sys.stderr, flush=True)
    if args.file:
        args.file.write_text(json.dumps(digests, indent=0))
    if not args.against:
        print(f"{len(digests)} runs")
        return 0
    other = json.loads(args.against.read_text())
    differing = 0
    for name, keys in digests.items():
        if name not in other:
            print(f"only here: {name}")
            continue
        both = other[name]
        different = [key for key in {**both, **keys} if both.get(key) != keys.get(key)]
        if different:
            differing += 1
            print(f"{name}: {', '.join(different[:12])}")
    print(f"{len(digests)} runs, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
