"""Keys of Mamba 2."""

from __future__ import annotations

from buddysim.training.architectures.model_config import (
    ActivationName,
    Depth,
    ModelConfig,
    Size,
    Vocabulary,
    check_multiple,
    problem,
)


class Mamba2Config(ModelConfig):
    """Keys of `Mamba2Config`."""

    vocab_size: Vocabulary
    hidden_size: Size
    num_hidden_layers: Depth
    num_heads: Size
    head_dim: Size
    state_size: Size = 128
    expand: Size = 2
    conv_kernel: Size = 4
    n_groups: Size = 8
    chunk_size: Size = 256
    hidden_act: ActivationName = "silu"
    use_bias: bool = False
    use_conv_bias: bool = True
    residual_in_fp32: bool = True

    @property
    def inner(self) -> int:
        """Features of all heads."""
        return self.num_heads * self.head_dim

    def check(self) -> None:
        """Refuse heads that don't have the expanded features, and groups that don't divide them."""
        super().check()
        if self.inner != self.expand * self.hidden_size:
            expected = f"{self.expand * self.hidden_size} (expand x hidden_size) / head_dim {self.head_dim}"
            raise problem("num_heads", expected, self.num_heads)
        check_multiple("num_heads", self.num_heads, "n_groups", self.n_groups)
