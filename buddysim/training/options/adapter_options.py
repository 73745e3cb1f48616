"""The options of adapters."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.option import option_field
from buddysim.training.options.lora_request import LIBRARIES, LoraRequest, read_lora

_GROUP = "adapters of a config.json's network"


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
