"""How target ratios are chosen, and where entry sizes come from: one set of options for every command and call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.option import option_field
from buddysim.base.signature import described
from buddysim.buddy.distribution import DEFAULT_DISTRIBUTION, Distribution, checked_seed
from buddysim.compress import DEFAULT
from buddysim.compress.compressors import entry_algorithms, find_for_entries

POLICIES = ("naive", "per-allocation", "final")
AGGREGATES = ("worst", "mean")
#: Seeds over which the range of a ratio of synthetic sizes is shown.
SYNTHETIC_SEEDS = 8
_SEEDS = 2**64


@described
@dataclass(frozen=True)
class ProfileOptions:
    """All options that target ratios depend on in addition to the trace; checked when made.

    The defaults (``ProfileOptions.threshold``, ...) are those of every command and call.

    Raises
    ------
    BuddysimError
        a fraction outside 0 to 1, a seed out of range, an unknown name, or a `profile_until_launch` below 0
    """

    threshold: float = option_field(
        float,
        "Buddy Threshold: largest fraction of an allocation's entries that may overflow its target",
        0.3,
        metavar="FRACTION",
    )
    aggregate: str = option_field(
        str,
        "snapshots to which the threshold applies; worst: every one; mean: their average",
        "worst",
        metavar="NAME",
        choices=AGGREGATES,
    )
    policy: str = option_field(
        str,
        "rule that chooses targets; final: one per allocation, 16x for mostly zero ones; per-allocation: without 16x; "
        "naive: one for all, the largest not above the free-placement ratio (the paper doesn't give its rule)",
        "final",
        metavar="NAME",
        choices=POLICIES,
    )
    compressor: str = option_field(
        str, "compressor that gives the sizes of entries", DEFAULT, metavar="NAME", choices=entry_algorithms
    )
    seed: int = option_field(int, "seed of the synthetic sizes, for allocations without data values", 0, metavar="N")
    size_distribution: str = option_field(
        str, "distribution of the synthetic sizes", DEFAULT_DISTRIBUTION, metavar="NAME", choices=Distribution.names
    )
    zero_fraction: float = option_field(
        float,
        "lowest fraction of entries that fit 8 B in every snapshot, for a target of 16x",
        0.99,
        metavar="FRACTION",
    )
    eight_byte_class: bool = option_field(
        bool,
        "distinguish an entry of 8 B from one of 32 B in the metadata; if not, it overflows 16x. A property of the "
        "machine (``buddy.eight_byte_class``)",
        True,
    )
    profile_until_launch: int | None = option_field(
        int, "number of launches up to which snapshots are profiled; all if not given", None, metavar="N"
    )

    def over_seeds(self) -> list[ProfileOptions]:
        """The same with `SYNTHETIC_SEEDS` seeds, from its own on."""
        return [replace(self, seed=(self.seed + step) % _SEEDS) for step in range(SYNTHETIC_SEEDS)]

    def __post_init__(self) -> None:
        _check_choice("policy", self.policy, POLICIES)
        _check_choice("aggregate", self.aggregate, AGGREGATES)
        exact_fraction("threshold", self.threshold)
        exact_fraction("zero_fraction", self.zero_fraction)
        find_for_entries(self.compressor)
        Distribution.load(self.size_distribution)
        checked_seed(self.seed)
        if self.profile_until_launch is not None and (
            isinstance(self.profile_until_launch, bool)
            or not isinstance(self.profile_until_launch, int)
            or self.profile_until_launch < 0
        ):
            raise BuddysimError(
                f"profile_until_launch {shortened(self.profile_until_launch)}: expected a number of launches from 0 on"
            )


def exact_fraction(what: str, value: float) -> Fraction:
    """Return a fraction exactly as it was written: 0.3 is 3/10."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BuddysimError(f"{what} {shortened(value)}: expected a fraction from 0 to 1")
    return Fraction(str(float(value)))


def _check_choice(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise BuddysimError(f"{what} {shortened(value)}: expected one of {', '.join(known)}")
