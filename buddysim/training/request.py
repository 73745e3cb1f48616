"""A request: all that one simulated training iteration depends on. Its fields' help is everybody's.

`buddysim.training.simulate` takes the fields as keywords, the command line as arguments, sweeps as axes. Fields of
`TrainingOptions` and options that schemes declare are keywords of the same surface.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.option import FILE, Option, field_options, option_field
from buddysim.base.signature import described
from buddysim.training import schemes
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.networks.graph import Network
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.search import LARGEST_BATCH

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.cost.calibration import Calibration


#: Compute capability from which PyTorch's FlashAttention runs.
FLASH_CAPABILITY = 8


class _Defaults(NamedTuple):
    batch: int
    machine: str | None
    scheme: str
    optimizer: str


#: What is simulated where a request names nothing: of the papers' networks, and of recorded ones.
DEFAULTS = {False: _Defaults(64, "titan-x", "vdnn-dyn", "none"), True: _Defaults(1, None, "eager", "adamw")}


@described
@dataclass(frozen=True)
class TrainingRequest:
    """One training iteration to simulate.

    Attributes
    ----------
    options : the choices that schemes read
    config : what a model's configuration leaves open
    """

    network: Network | str | os.PathLike[str] | Mapping[str, Any] = option_field(
        str,
        "name of a network (see: networks list), a network file, or a model's config.json",
        metavar="NAME|FILE",
        completes="network",
        python="a `Network`, the content of a config.json",
    )
    batch: int | None = option_field(
        int,
        "number of samples of the iteration; if not given the captured script's own, 1 for a model's configuration, "
        "64 for other networks",
        None,
        metavar="N",
    )
    machine: TrainingMachine | str | None = option_field(
        str,
        "machine to simulate, a name or a file; titan-x if not given, but a model's configuration needs one",
        None,
        metavar="NAME|FILE.toml",
        completes="training machine",
        python="a `TrainingMachine`",
    )
    scheme: str | None = option_field(
        str,
        "name of a training scheme; eager for a model's configuration, vdnn-dyn for other networks, if not given",
        None,
        metavar="NAME",
        completes="training scheme",
    )
    calibration: Calibration | str | os.PathLike[str] | None = option_field(
        str, "file with layer times of a GPU (see: calibrate)", None, metavar=FILE
    )
    options: TrainingOptions = field(default_factory=TrainingOptions)
    config: ConfigOptions = field(default_factory=ConfigOptions)

    def __post_init__(self) -> None:
        if self.batch is None:
            return
        batch = whole("batch", self.batch)
        if not 1 <= batch <= LARGEST_BATCH:
            raise BuddysimError(f"batch {batch}: expected 1 to {LARGEST_BATCH}")
        object.__setattr__(self, "batch", batch)

    @classmethod
    def of(cls, options: TrainingOptions | None = None, **keywords: Any) -> TrainingRequest:
        """Return a request from keywords: its fields, those of its options, and options that schemes declare.

        Raises
        ------
        BuddysimError
            an unknown keyword, a wrong value, or one of the options next to `options`
        """
        own = {name: keywords.pop(name) for name in field_options(cls) if name in keywords}
        config = {name: keywords.pop(name) for name in field_options(ConfigOptions) if name in keywords}
        if options is not None and keywords:
            raise BuddysimError(f"option {next(iter(keywords))}: expected among options, where these are given")
        own["config"] = ConfigOptions(**config)
        return cls(**own, options=make_options(**keywords) if options is None else options)

    def resolved(self) -> TrainingRequest:
        """Return the request with its network loaded and the values that depend on the kind of network.

        Raises
        ------
        BuddysimError
            a model's configuration and no machine
        """
        from buddysim.training.networks.captured.network import CapturedNetwork

        network = self.load_network()
        if network.recorded and self.options.precision != "fp32":
            raise BuddysimError(
                f"precision {self.options.precision}: {network.name} has number formats of its own: expected a recipe"
            )
        batch, machine, scheme, optimizer = DEFAULTS[network.recorded]
        if self.machine is None and machine is None:
            raise no_machine(network.name)
        if isinstance(network, CapturedNetwork):
            batch, optimizer = network.captured_batch, network.optimizer
            if self.options.optimizer not in (None, optimizer):
                own = f"{network.name} was captured with {network.options['optimizer']}"
                raise BuddysimError(f"optimizer {shortened(self.options.optimizer)}: {own}: expected none")
        named = self.machine or machine
        if network.options.get("attention") in ("flash", "sdpa"):
            network = _with_kernels_of(network, named)
        return replace(
            self,
            network=network,
            batch=self.batch or batch,
            machine=named,
            scheme=self.scheme or scheme,
            options=replace(self.options, optimizer=self.options.optimizer or optimizer),
        )

    def precision(self) -> str:
        """Return the precision of its layer times: that of the record of a model, else the option's."""
        return str(getattr(self.load_network(), "precision", self.options.precision))

    def load_network(self) -> Network:
        """Return its network, loaded where the request has its name or path.

        Raises
        ------
        BuddysimError
            options of a model's configuration for another network
        """
        from buddysim.training.named_network import load_network

        network = self.network if isinstance(self.network, Network) else load_network(self.network)
        changed = self.config.changed()
        return network.with_options(changed) if changed else network

    def load_machine(self) -> TrainingMachine:
        """Return its machine, loaded where the request has its name."""
        from buddysim.machine.training import TrainingMachine

        machine = self.resolved().machine if self.machine is None else self.machine
        assert machine is not None
        return machine if isinstance(machine, TrainingMachine) else TrainingMachine.load(machine)

    def cost_model(self) -> CostModel:
        """Load the layer times of its machine."""
        from buddysim.training.cost import CostModel

        options = self.options
        named = (options.conv_library, self.calibration, self.precision())
        return CostModel.load(self.load_machine(), *named, channels_last=options.channels_last)


def _with_kernels_of(network: Network, named: TrainingMachine | str | None) -> Network:
    """Return a network with the attention that PyTorch takes on a machine, where it would take FlashAttention.

    Raises
    ------
    BuddysimError
        FlashAttention, named for a GPU that it does not run on (``sdp_utils.cpp``)
    """
    from buddysim.machine.training import TrainingMachine

    assert named is not None
    machine = named if isinstance(named, TrainingMachine) else TrainingMachine.load(named)
    capability = machine.training.compute_capability
    if capability is None or int(capability.partition(".")[0]) >= FLASH_CAPABILITY:
        return network
    if getattr(network, "config_options", ConfigOptions()).attention == "flash":
        raise BuddysimError(
            f"attention flash: {machine.name} has compute capability {capability}, FlashAttention needs "
            f"{FLASH_CAPABILITY}.0: expected sdpa, efficient or eager (PyTorch takes efficient there)"
        )
    return network.with_options({"attention": "efficient"})


def no_machine(network: str) -> BuddysimError:
    """Return the error of a recorded network without a machine."""
    return BuddysimError(f"machine: not named: expected the GPU that trains {network} (--machine; see: machines)")


def request_options() -> dict[str, Option]:
    """Return the options of every request, by name; those that schemes declare are `schemes.options`."""
    return {**field_options(TrainingRequest), **field_options(TrainingOptions), **field_options(ConfigOptions)}


def make_options(**keywords: Any) -> TrainingOptions:
    """Return `TrainingOptions` from keywords: its fields, and options that schemes declare.

    Raises
    ------
    BuddysimError
        an unknown keyword or a wrong value
    """
    fields = field_options(TrainingOptions)
    selected = {name: value for name, value in keywords.items() if name in fields}
    extra = {**keywords.get("extra", {})}
    extra |= {name: value for name, value in keywords.items() if name not in (*fields, "extra")}
    declared = schemes.options() if extra else {}
    for name, value in extra.items():
        if name not in declared:
            every = sorted({*fields, *declared})
            raise BuddysimError(f"option {shortened(name)}: expected one of {', '.join(every)}{hint(name, every)}")
        if value is not None:
            declared[name].check(name, value)
    for name, value in selected.items():
        if value is not None:
            fields[name].check_choice(name, value)
    if selected.get("memory_bytes") is not None:
        selected["memory_bytes"] = whole("memory_bytes", selected["memory_bytes"])
    options = TrainingOptions(**selected, extra=extra)
    if options.memory_bytes is not None and options.memory_bytes < 1:
        raise BuddysimError(f"memory of {options.memory_bytes} bytes: expected 1 or more")
    return options


def with_scheme_options(options: TrainingOptions, extra: Mapping[str, Any]) -> TrainingOptions:
    """Return the options with those that schemes declare.

    Raises
    ------
    BuddysimError
        an unknown name or a wrong value
    """
    return replace(options, extra={**options.extra, **make_options(**extra).extra})


def whole(name: str, value: Any) -> int:
    """Return the number as an `int`, whatever integer type it has.

    Raises
    ------
    BuddysimError
        anything else
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise BuddysimError(f"{name} {shortened(value)}: expected an integer") from None
