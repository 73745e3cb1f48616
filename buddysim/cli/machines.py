"""``python -m buddysim machines``: lists the presets, shows a machine with its sources, measures the GPU at hand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError

if TYPE_CHECKING:
    from buddysim.machine import Machine
    from buddysim.machine.training import TrainingMachine

NAME = "machines"
TASK = "machine and models"
ORDER = 400
HELP = """list machines, show one with sources, or measure the GPU here

'machines measure' runs the microbenchmarks of 'validate curves' and a few kernels on the first GPU that CUDA sees, and
writes a table of their curves and a machine file. It needs CuPy: pip install 'buddysim[gpu]'. With --model it measures
the operators of a model's training step instead, and the host's time to launch one, on the GPU or CPU that PyTorch
finds. --opencl does so on an OpenCL device, as far as OpenCL goes: copies both ways by size, kernels that memory
bounds, products in fp32 by a tiled kernel of its own, launches. It needs PyOpenCL: pip install 'buddysim[opencl]'. All
three were tested on CPUs (OpenCL on PoCL); they have not been run on a GPU yet."""

_MEASURE = "measure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes
    from buddysim.cli.json_output import add_json_argument

    completes(
        parser.add_argument(
            "machine", nargs="?", metavar="NAME|FILE.toml|measure", help="the machine to show; none: list all"
        ),
        "machine",
    )
    form = parser.add_mutually_exclusive_group()
    add_json_argument(form, "the figures")
    form.add_argument("--toml", action="store_true", help="print the machine file, to start your own from")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a figure, for example l2.size=6MiB"
    )
    parser.add_argument("--like", metavar="NAME", help="measure: the preset of the figures that can't be measured")
    parser.add_argument("--model", metavar="NAME|config.json", help="measure: a model whose operators are measured")
    parser.add_argument("--opencl", action="store_true", help="measure: the model's operators in OpenCL, and copies")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="measure: samples of the model's step")
    parser.add_argument(
        "--sequence", type=int, metavar="TOKENS", help="measure: tokens of a sample of the model's step"
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", help="measure: where to write (default: measured)")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.jsonfile import print_utf8
    from buddysim.base.output import check_outputs
    from buddysim.base.settings import parse_settings
    from buddysim.cli.json_output import is_on_stdout, json_file, write_plain_json
    from buddysim.machine import Machine
    from buddysim.machine.training import TrainingMachine
    from buddysim.report.machine_screen import machine_parts, replay_machines, training_machines
    from buddysim.report.screen import print_screen

    if args.machine == _MEASURE:
        return _measure(args)
    if args.like is not None or args.output is not None or args.model is not None or args.opencl:
        raise BuddysimError("machines: --like, --model, --opencl, -o: no measurement: expected 'machines measure'")
    if args.machine is None and (args.set or args.toml):
        raise BuddysimError("machines: --set, --toml: no machine: expected the name of one")
    check_outputs([json_file(args)], [args.machine])
    if args.machine is None:
        machines = [Machine.load(name) for name in Machine.presets()]
        trained = [TrainingMachine.load(name) for name in TrainingMachine.names()]
        if args.json is not None:
            everything = {machine.name: machine.to_dict() for machine in machines}
            for other in trained:
                everything.setdefault(other.name, other.to_dict())
            write_plain_json(args, everything)
        if not is_on_stdout(args):
            print_screen(["for run:", replay_machines(machines), "", "for training:", training_machines(trained)])
        return 0
    machine = _load(args.machine)
    if args.set:
        machine = machine.with_overrides(parse_settings(args.set), where="--set")
    sources = {key: machine.source(key) for key in machine.dotted_keys() if key not in ("name", "description")}
    write_plain_json(args, {**machine.to_dict(), "sources": sources, "checksum": machine.checksum})
    if is_on_stdout(args):
        return 0
    if args.toml:
        print_utf8(machine.to_toml())
    else:
        print_screen(machine_parts(machine))
    return 0


def _measure(args: argparse.Namespace) -> int:
    from pathlib import Path

    from buddysim.base.terminal import say
    from buddysim.measure.gpu import open_gpu
    from buddysim.measure.session import measure_gpu

    if args.json or args.toml or args.set:
        raise BuddysimError("machines measure: --json, --toml, --set: no machine is shown: expected none of them")
    if args.model is not None:
        return _measure_operators(args)
    if args.opencl:
        raise BuddysimError("machines measure: --opencl: no model: expected --model, whose operators are measured")
    for path in measure_gpu(Path(args.output or "measured"), args.like, open_gpu, say):
        print(f"written: {path}")
    return 0


def _measure_operators(args: argparse.Namespace) -> int:
    from pathlib import Path

    from buddysim.base.terminal import say
    from buddysim.measure.copies import measure_copies
    from buddysim.measure.opencl_operators import open_opencl
    from buddysim.measure.operators import measure_operators, open_torch
    from buddysim.measure.session import TABLE
    from buddysim.training.networks.recorded.network import RecordedNetwork
    from buddysim.training.request import TrainingRequest

    sequence = {} if args.sequence is None else {"sequence": args.sequence}
    network = TrainingRequest.of(network=args.model, batch=args.batch, **sequence).load_network()
    recorded = network.at(args.batch, "adamw") if network.recorded else network
    if not isinstance(recorded, RecordedNetwork):
        raise BuddysimError(f"--model: {network.name} has no recorded operations: expected a model's config.json")
    folder = Path(args.output or "measured")
    if args.opencl:
        device = open_opencl(args.like)
        say(f"{device.name}: {device.about}")
        paths = measure_operators(folder, recorded, device, say)
        paths.append(measure_copies(folder / TABLE, device, say))
    else:
        paths = measure_operators(folder, recorded, open_torch(args.like), say)
    for path in paths:
        print(f"written: {path}")
    return 0


def _load(name: str) -> Machine | TrainingMachine:
    """A machine for replays; one for training where the preset or file describes nothing else."""
    from buddysim.machine import Machine
    from buddysim.machine.presets import file_content, is_path, training_presets
    from buddysim.machine.training import TrainingMachine

    if name in training_presets():
        return TrainingMachine.load(name)
    if is_path(name):
        content = file_content(name)
        if "training" in content and "sm" not in content:
            return TrainingMachine.load(name)
    return Machine.load(name)
