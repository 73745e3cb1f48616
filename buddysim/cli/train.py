"""``python -m buddysim train``: one training iteration on a GPU with too little memory, under several schemes."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.networks.graph import Network
    from buddysim.training.result import TrainingResult

NAME = "train"
HELP = """simulate one training iteration of a network under memory schemes, side by side

Which schemes fit the GPU's memory (and what is missing where one doesn't), what they hold on average, what they move to
the host, and their time against a GPU with enough memory. --max-batch finds the largest batch that fits; --budget finds
the fastest scheme that fits in so much memory. Schemes: base-m, base-p, oracle, vdnn-none-m, vdnn-none-p, vdnn-all-m,
vdnn-all-p, vdnn-conv-m, vdnn-conv-p, vdnn-dyn, cdma-zv, cdma-rl, cdma-zl, cdma-bw, save-on-cpu, checkpoint."""

DEFAULT_SCHEMES = ("base-p", "vdnn-all-m", "vdnn-conv-p", "vdnn-dyn", "oracle")

_CDMA = ("activations", "epoch", "densities", "density", "cluster", "seed", "layout", "window", "masks")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("network", metavar="NAME|FILE.toml", help="a network of the zoo (dnn list), or a network file")
    parser.add_argument("--batch", metavar="N", type=int, default=64, help="samples of one iteration (default: 64)")
    parser.add_argument("--machine", metavar="NAME|FILE.toml", default="titan-x", help="the GPU (default: titan-x)")
    parser.add_argument(
        "--scheme", metavar="NAME[,NAME...]", help=f"schemes, or 'every' (default: {','.join(DEFAULT_SCHEMES)})"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        nargs="+",
        default=[],
        dest="settings",
        help="change the machine, for example training.memory=24GiB; may be repeated",
    )
    parser.add_argument("--link", metavar="NAME", help="the link to the host: a name of the machine's links")
    parser.add_argument(
        "--prefetch",
        metavar="HOW",
        default="published",
        help="how offloaded maps come back: published (default), just-in-time, on-demand",
    )
    parser.add_argument("--library", metavar="NAME", help="version of the CONV library, for example cudnn4")
    parser.add_argument("--calibration", metavar="FILE", help="layer times of a GPU of one's own (buddysim calibrate)")
    parser.add_argument(
        "--fit", choices=("best-fit", "first-fit"), default="best-fit", help="how the memory pool picks a free piece"
    )
    search = parser.add_mutually_exclusive_group()
    search.add_argument("--max-batch", action="store_true", help="find the largest batch that fits, for each scheme")
    search.add_argument(
        "--budget", metavar="SIZE", help="GPU memory, for example 8GiB: find the fastest scheme that fits in it"
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        help="write streams and memory over time: .json for Perfetto; .png, .svg or .pdf as a picture",
    )
    parser.add_argument("--json", metavar="FILE", help="write the full result; -: to standard output, no screen")
    _add_cdma_arguments(parser.add_argument_group("what cDMA compresses (default: the measurement that comes along)"))


def _add_cdma_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--activations", metavar="FILE", help="feature maps observed in training")
    group.add_argument("--measure", action="store_true", help="train a network here and observe it (needs PyTorch)")
    group.add_argument("--data", metavar="FOLDER", help="with --measure: the four files of Fashion-MNIST")
    group.add_argument("--epoch", metavar="N", type=float, help="the observations nearest to that epoch, not the mean")
    group.add_argument("--densities", metavar="FILE", help="a table of densities or ratios by layer, TOML or CSV")
    group.add_argument("--density", metavar="SHARE", type=float, help="generated: share of elements that aren't zero")
    group.add_argument("--cluster", metavar="N", type=int, help="generated: mean run of zeros or non-zeros")
    group.add_argument("--seed", metavar="N", type=int, help="generated: seed")
    group.add_argument("--layout", metavar="NAME", help="of the maps: NCHW, NHWC or CHWN")
    group.add_argument("--window", metavar="BYTES", type=int, help="what is compressed at a time (default: 4096)")
    group.add_argument(
        "--no-masks", action="store_false", dest="masks", default=None, help="leave ZVC's masks out, as the paper does"
    )


def run(args: argparse.Namespace) -> int:
    from buddysim.base.atomic import check_writable
    from buddysim.base.errors import BuddysimError
    from buddysim.training.networks.graph import Network
    from buddysim.training.search import LARGEST_BATCH

    if not 1 <= args.batch <= LARGEST_BATCH:
        raise BuddysimError(f"--batch {args.batch}: expected a whole number from 1 to {LARGEST_BATCH}")
    schemes = chosen_schemes(args)
    network = Network.load(args.network)
    machine = _machine(args)
    given = _options(args)
    _check_contents(args, schemes)
    for path in _outputs(args):
        _keep_inputs(path, args)
        check_writable(path)
    with measured(args) as activations:
        if activations is not None:
            given["activations"] = activations
        results, batches = _simulate(network, machine, schemes, args, given)
    if args.timeline is not None:
        from buddysim.report.timeline_file import write_timeline

        write_timeline(args.timeline, {scheme: result.outcome for scheme, result in results.items()})
    _report(results, batches, args)
    _refuse_where_nothing_fits(results, args)
    return 0


def chosen_schemes(args: argparse.Namespace) -> list[str]:
    """The names, each once; a BuddysimError names the nearest of an unknown one."""
    from buddysim.training import schemes

    if args.scheme == "every" or (args.scheme is None and args.budget is not None):
        return [name for name in schemes.names() if args.budget is None or name != "oracle"]
    if args.scheme is None:
        return [name for name in DEFAULT_SCHEMES if not (args.max_batch and name == "oracle")]
    chosen = list(dict.fromkeys(name.strip() for name in args.scheme.split(",")))
    for name in chosen:
        schemes.load(name)
    return chosen


def _check_contents(args: argparse.Namespace, schemes: list[str]) -> None:
    """What maps hold plays a part only where something compresses them."""
    from buddysim.base.errors import BuddysimError

    given = ["--no-masks"] if args.masks is False else []
    given += [f"--{name}" for name in _CDMA if name != "masks" and getattr(args, name) is not None]
    given += ["--measure"] if args.measure else []
    if given and not any(name.startswith("cdma") for name in schemes):
        raise BuddysimError(f"{given[0]}: is about what cDMA compresses: expected one of its schemes")


@contextmanager
def measured(args: argparse.Namespace) -> Iterator[str | None]:
    """The file of a measurement made here and now, where one is asked for; it is gone afterwards."""
    from buddysim.base.errors import BuddysimError

    if not args.measure:
        if args.data is not None:
            raise BuddysimError("--data: is the data to train with: expected --measure beside it")
        yield None
        return
    given = [f"--{name}" for name in ("activations", "densities", "density") if getattr(args, name) is not None]
    if given:
        raise BuddysimError(f"--measure and {given[0]}: expected one source of activations")
    from buddysim.report.progress import progress_bars
    from buddysim.training.contents.measure import MeasureSettings, measure

    settings = MeasureSettings() if args.data is None else MeasureSettings(data=Path(args.data))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "measured.maps")
        with progress_bars("iterations") as start_bar:
            bar = start_bar("training") if start_bar else None
            measure(path, settings, (lambda done, of, loss: bar(done, of)) if bar else None)
        yield path


def _machine(args: argparse.Namespace) -> TrainingMachine:
    from buddysim.base.settings import parse_settings
    from buddysim.machine.training import TrainingMachine

    machine = TrainingMachine.load(args.machine)
    overrides = parse_settings(setting for group in args.settings for setting in group)
    return machine.with_overrides(overrides, "--set") if overrides else machine


def _options(args: argparse.Namespace) -> dict[str, Any]:
    from buddysim.base.errors import BuddysimError
    from buddysim.machine.units import parse_size

    given: dict[str, Any] = {name: getattr(args, name) for name in ("link", "prefetch", "library", "fit")}
    given |= {name: getattr(args, name) for name in _CDMA if getattr(args, name) is not None}
    if args.budget is not None:
        try:
            given["memory_bytes"] = parse_size(args.budget)
        except ValueError as error:
            raise BuddysimError(f"--budget: {error}") from None
        if given["memory_bytes"] < 1:
            raise BuddysimError(f"--budget: {args.budget}: expected more than nothing")
    return given


def _simulate(
    network: Network, machine: TrainingMachine, schemes: list[str], args: argparse.Namespace, given: Mapping[str, Any]
) -> tuple[dict[str, TrainingResult], dict[str, int] | None]:
    from buddysim.training.cost import CostModel
    from buddysim.training.driver import make_options, simulate
    from buddysim.training.search import largest_batch

    options = make_options(**given)
    cost = CostModel.load(machine, options.library, args.calibration)

    def simulated(scheme: str, batch: int) -> TrainingResult:
        return simulate(network, batch, machine, scheme, options=options, cost=cost)

    if not args.max_batch:
        return {scheme: simulated(scheme, args.batch) for scheme in schemes}, None
    results, batches = {}, {}
    for scheme in schemes:
        batches[scheme], results[scheme] = largest_batch(partial(simulated, scheme))
    return results, batches


def _outputs(args: argparse.Namespace) -> list[str]:
    """The files to write."""
    from buddysim.report.timeline_file import check_timeline

    if args.timeline is not None:
        check_timeline(args.timeline)
    return [path for path in (args.json, args.timeline) if path not in (None, "-")]


def _keep_inputs(path: str, args: argparse.Namespace) -> None:
    """An output must not replace what the simulation reads."""
    from buddysim.base.errors import BuddysimError

    for given in (args.network, args.machine, args.activations, args.densities, args.calibration):
        if given is not None and Path(given).exists() and Path(path).resolve() == Path(given).resolve():
            raise BuddysimError(f"{path}: is an input of this simulation: expected another file to write")


def _report(results: Mapping[str, TrainingResult], batches: Mapping[str, int] | None, args: argparse.Namespace) -> None:
    from buddysim.base.jsonfile import write_json
    from buddysim.report.training import print_training
    from buddysim.training.search import fastest_that_fits

    content = {scheme: result.to_dict() for scheme, result in results.items()}
    if args.json is not None:
        write_json(args.json, content)
    if args.json == "-":
        return
    if args.budget is not None:
        content = dict(sorted(content.items(), key=lambda item: (not item[1]["fits"], item[1]["time_ms"])))
    written = f"full result: {args.json or 'not kept (--json FILE writes it)'}"
    written += f"; timeline: {args.timeline}" if args.timeline else ""
    print_training(content, written, batches)
    if args.budget is not None:
        fastest = fastest_that_fits(results)
        if fastest is not None:
            print(f"\nfastest that fits in {args.budget}: {fastest}")


def _refuse_where_nothing_fits(results: Mapping[str, TrainingResult], args: argparse.Namespace) -> None:
    from buddysim.base.errors import BuddysimError
    from buddysim.report.training import missing_text

    if any(result.counters["fits"] for result in results.values()):
        return
    best = min(results, key=lambda scheme: (results[scheme].counters["memory.peak_bytes"], scheme))
    batch = results[best].provenance["batch"]
    raise BuddysimError(
        f"{args.network}, batch {batch}: none of {', '.join(results)} fits; the nearest is {best}: "
        f"{missing_text(results[best].counters)}"
    )
