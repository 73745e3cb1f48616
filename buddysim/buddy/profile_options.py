"""How target ratios are chosen, and where entry sizes come from: one set of options for every command and call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.buddy.distribution import DEFAULT_DISTRIBUTION, Distribution, checked_seed
from buddysim.compress import DEFAULT
from buddysim.compress.compressors import find_for_entries

POLICIES = ("naive", "per-allocation", "final")
AGGREGATES = ("worst", "mean")
#: Seeds over which the range of a ratio of synthetic sizes is shown.
SYNTHETIC_SEEDS = 8
_SEEDS = 2**64


@dataclass(frozen=True)
class ProfileOptions:
    """All options that target ratios depend on in addition to the trace; checked when made.

    Parameters
    ----------
    threshold : Buddy Threshold, the largest fraction of an allocation's entries that may overflow its target
    aggregate : ``"worst"``: the threshold holds in every snapshot; ``"mean"``: on average
    policy : ``"final"``: a ratio per allocation, 16x for mostly-zero ones; ``"per-allocation"``: without 16x;
        ``"naive"``: one ratio for all, the largest not above the free-placement ratio (the paper doesn't give its rule)
    compressor : name of the compressor whose sizes entries have
    seed, size_distribution : of the sizes of allocations without values
    zero_fraction : least fraction of entries that fit 8 B, in every snapshot, for 16x
    eight_byte_class : whether metadata distinguish an entry of 8 B from one of 32 B; if not, it overflows 16x. A
        property of the machine (``buddy.eight_byte_class``)
    profile_until_launch : only snapshots taken when at most that many launches had ended; None: all snapshots

    The defaults (``ProfileOptions.threshold``, ...) are those of every command and call.

    Raises
    ------
    BuddysimError
        a fraction outside 0 to 1, a seed out of range, an unknown name, or a `profile_until_launch` below 0
    """

    threshold: float = 0.3
    aggregate: str = "worst"
    policy: str = "final"
    compressor: str = DEFAULT
    seed: int = 0
    size_distribution: str = DEFAULT_DISTRIBUTION
    zero_fraction: float = 0.99
    eight_byte_class: bool = True
    profile_until_launch: int | None = None

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
