"""What a user asks of adapters (``--lora RANK[,MODULE..]``, ``--qlora``, ``--lora-library``), and the options."""

from __future__ import annotations

import re
from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.option import option_field

LIBRARIES = ("torchtune", "peft")
LARGEST_RANK = 1 << 16
_RANK = re.compile(r"[1-9][0-9]{0,4}")
_MODULES = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_GROUP = "adapters of a config.json's network"


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


@dataclass(frozen=True)
class AdapterOptions:
    """Whether a model's own weights are trained, or adapters next to them."""

    lora: str | None = option_field(
        str,
        "train adapters of this rank alone, next to frozen weights; then the modules that get one, by name, or all "
        "(of all linear layers of blocks); those that the PEFT library adapts if none is named",
        None,
        metavar="RANK[,MODULE..]",
        group=_GROUP,
    )
    qlora: bool = option_field(
        bool, "hold the frozen weights of blocks in 4 bits (nf4, double quantisation), with lora", False, group=_GROUP
    )
    lora_library: str = option_field(
        str,
        "whose adapters and quantised weights: torchtune (with torchao), peft (with bitsandbytes)",
        LIBRARIES[0],
        metavar="NAME",
        group=_GROUP,
        choices=LIBRARIES,
    )

    @property
    def adapters(self) -> LoraRequest | None:
        """What the options ask for; None where all weights are trained.

        Raises
        ------
        BuddysimError
            options that contradict each other
        """
        return read_lora(self.lora, self.qlora, self.lora_library)
