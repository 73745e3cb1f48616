"""What a user asks of adapters: ``--lora RANK[,MODULE..]``, ``--qlora``, ``--lora-library``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

LIBRARIES = ("torchtune", "peft")
LARGEST_RANK = 1 << 16
_RANK = re.compile(r"[1-9][0-9]{0,4}")
_MODULES = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True)
class LoraRequest:
    """Adapters of a model.

    Attributes
    ----------
    rank : features between the two products of an adapter
    modules : names of the modules that get one; () for those that PEFT adapts in such a model
    quantized : whether the frozen weights of blocks have 4 bits
    library : whose code it is
    """

    rank: int
    modules: tuple[str, ...] = ()
    quantized: bool = False
    library: str = "torchtune"


def read_lora(text: str | None, quantized: bool, library: str) -> LoraRequest | None:
    """Return what the three options say together; None where all weights are trained.

    Raises
    ------
    BuddysimError
        a text that is not ``RANK[,MODULE..]``, an unknown library, quantised weights without adapters
    """
    if library not in LIBRARIES:
        nearest = hint(library, LIBRARIES)
        raise BuddysimError(f"lora_library {shortened(library)}: expected one of {', '.join(LIBRARIES)}{nearest}")
    if text is None:
        if quantized:
            raise BuddysimError("qlora: quantised weights can't be trained: expected lora RANK as well")
        if library != LIBRARIES[0]:
            raise BuddysimError(f"lora_library {library}: there are no adapters: expected lora RANK as well")
        return None
    rank, *modules = (part.strip() for part in text.split(","))
    if not _RANK.fullmatch(rank) or not all(map(_MODULES.fullmatch, modules)) or int(rank) > LARGEST_RANK:
        raise BuddysimError(
            f"lora {shortened(text)}: expected RANK[,MODULE..], a rank of 1 to {LARGEST_RANK} (16, or 16,q_proj,v_proj)"
        )
    return LoraRequest(int(rank), tuple(modules), quantized, library)
