"""Steps of small models, on which recipes and optimizers are tried."""

from __future__ import annotations

from buddysim.training.architectures.read_config import UnreadConfig, parse_config
from buddysim.training.autograd import Tape
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.recipes import Recipe
from buddysim.training.recorded_step.run import record_step

BATCH = 2
TOKENS = 16
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 80, "hidden_size": 32, "intermediate_size": 56,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip


def operations_of(tape: Tape) -> list[tuple[object, ...]]:
    """Return what the operations of a tape do, to compare two."""
    return [(one.name, one.phase, one.scope, one.reads, one.writes, one.flops) for one in tape.operations]


def trial_step(recipe: Recipe, optimizer: str = "none", iterations: int = 1) -> Tape:
    """Record iterations of a small Llama."""
    config = parse_config(UnreadConfig(LLAMA, "trial", "trial"))
    return record_step(config, ConfigOptions(sequence=TOKENS), recipe, BATCH, optimizer, iterations)
