"""A request: all that one replay of a trace depends on. Its fields' help is everybody's.

`buddysim.simulate` takes the fields as keywords, the command line as arguments, sweeps as axes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.option import FILE, option_field, same_option
from buddysim.base.signature import described
from buddysim.buddy.profile_options import ProfileOptions
from buddysim.replay.schemes import DEFAULT
from buddysim.replay.sensitivity import ALL, AUTO, KINDS, MAX_INSTRUCTIONS, MAX_RUNS, NONE

if TYPE_CHECKING:
    from buddysim.buddy import Targets
    from buddysim.machine import Machine
    from buddysim.trace import Trace

Path = str | os.PathLike[str]


@described
@dataclass(frozen=True)
class ReplayRequest:
    """One replay to simulate.

    Raises
    ------
    BuddysimError : targets are given, and a profile to make them from
    """

    trace: Trace | Path = option_field(str, "trace file", metavar=FILE, python="an open `Trace`")
    machine: Machine | Path = option_field(
        str,
        "machine to simulate, a name or a file",
        "p100-nvlink2",
        metavar="NAME|FILE.toml",
        completes="replay machine",
        python="a `Machine`",
    )
    scheme: str = option_field(str, "name of a replay scheme", DEFAULT, metavar="NAME", completes="replay scheme")
    targets: Targets | Path | None = option_field(
        str,
        "targets file, as profile -o writes it; without one a trace is profiled",
        None,
        metavar=FILE,
        python="`Targets`",
    )
    threshold: float = same_option(ProfileOptions, "threshold")
    compressor: str = same_option(ProfileOptions, "compressor")
    seed: int = same_option(ProfileOptions, "seed")
    size_distribution: str = same_option(ProfileOptions, "size_distribution")
    profile_from: Trace | Path | None = option_field(
        str,
        "trace of another input of the same program, whose profile gives the targets",
        None,
        metavar=FILE,
        python="an open `Trace`",
    )
    profile_until_launch: int | None = same_option(ProfileOptions, "profile_until_launch")
    kernels: slice | range | None = option_field(
        str,
        "indices of the kernels to replay: 3, 3:7, 3: or :7; all if not given",
        None,
        metavar="FIRST:END",
        python="a slice or a range",
    )
    compute_gap_scale: Fraction | float = option_field(
        float,
        "factor of the trace's compute gaps, critical paths and use distances (`exact_compute_gap_scale`)",
        1,
        metavar="FACTOR",
        python="a `Fraction`",
    )
    queueing: bool = option_field(bool, "count the waiting times of requests at each kind of resource", False)
    exact_order: bool = option_field(
        bool,
        "let lines reach L1, L2 and their MSHRs in the order of their arrival, not of their issue: slower; not for "
        "schemes with page faults",
        False,
    )
    partial: bool = option_field(
        bool, "accept a trace file whose end is missing; results say that they are partial", False
    )
    sensitivity: str = option_field(
        str,
        f"changes of the sensitivity range, from at most {MAX_RUNS} more runs of every scheme: {ALL}, {NONE}, {AUTO} "
        f"({ALL} for runs of up to {MAX_INSTRUCTIONS // 10**6} million memory instructions), or some of "
        f"{','.join(KINDS)}",
        NONE,
        metavar="NAME[,NAME..]",
    )

    def __post_init__(self) -> None:
        for name in ("profile_from", "profile_until_launch"):
            if self.targets is not None and getattr(self, name) is not None:
                raise BuddysimError(f"{name}: targets are given, so nothing is profiled: expected one of the two")

    def profile_options(self) -> ProfileOptions:
        """Return the options of the profile that gives the targets."""
        return ProfileOptions(
            self.threshold,
            compressor=self.compressor,
            seed=self.seed,
            size_distribution=self.size_distribution,
            profile_until_launch=self.profile_until_launch,
        )

    def load_machine(self) -> Machine:
        """Return its machine, loaded where the request has a name or a path."""
        from buddysim.machine import Machine

        return self.machine if isinstance(self.machine, Machine) else Machine.load(self.machine)
