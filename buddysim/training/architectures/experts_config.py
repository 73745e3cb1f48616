"""Keys of decoders with experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from buddysim.training.architectures.model_config import Size, problem
from buddysim.training.architectures.rotary_config import GroupedConfig


class ExpertsConfig(GroupedConfig):
    """A decoder whose tokens each take some of several gated layers."""

    ALIASES: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    #: The loss that balances the experts reads the routers' logits of all layers; it is off by default.
    REFUSED: ClassVar[Mapping[str, tuple[object, ...]]] = {"output_router_logits": (None, False)}

    num_experts_per_tok: Size
    num_local_experts: Size

    def check(self) -> None:
        """Refuse more experts a token than there are."""
        super().check()
        if self.num_experts_per_tok > self.num_local_experts:
            raise problem(
                "num_experts_per_tok", f"at most the {self.num_local_experts} experts", self.num_experts_per_tok
            )
