"""The formats of delayed precision reduction (Gist, Section IV-A)."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

WORD_BYTES = 4


@dataclass(frozen=True)
class DprFormat:
    """A floating-point format: a sign bit, `exponent_bits`, `mantissa_bits`; `per_word` values in 4 bytes.

    The bias is ``2**(exponent_bits - 1) - 1``. The largest exponent stands for NaN; the smallest, for zero.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    per_word: int

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return (2 - 2.0**-self.mantissa_bits) * 2.0**self.bias

    @property
    def min_normal(self) -> float:
        """The smallest positive value."""
        return 2.0 ** (1 - self.bias)

    def payload_bytes(self, count: int) -> int:
        """Bytes of the payload of `count` values: FP10 has three values in 4 bytes, the last 4 bytes are padded."""
        if self.per_word == 3:
            return -(-count // 3) * WORD_BYTES
        return count * WORD_BYTES // self.per_word


FORMATS = {
    one.name: one for one in (DprFormat("fp16", 5, 10, 2), DprFormat("fp10", 5, 4, 3), DprFormat("fp8", 4, 3, 4))
}


def find_format(name: str) -> DprFormat:
    """Return the format of a name.

    Raises
    ------
    BuddysimError
        if the name is unknown; the message has the nearest name
    """
    if name not in FORMATS:
        raise BuddysimError(
            f"format {shortened(name)}: unknown: expected one of {', '.join(FORMATS)}{hint(name, FORMATS)}"
        )
    return FORMATS[name]
