"""Measure the density of what autograd saves in small transformers while they learn: a TOML table by operator.

``PYTHONPATH=. python tools/measure_transformer_density.py`` needs PyTorch and `transformers`. Three models of 4 blocks
(OPT with ReLU, GPT-2 with GELU, Llama with SiLU) learn the bytes of this repository's documents, in bf16 autocast. At
four points of each training, every tensor that autograd saves counts by the operator that made it: the fraction of
elements that aren't zero. Weights and integers are left out.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

from buddysim.base.textfile import toml_text

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "buddysim" / "training" / "contents" / "data" / "transformer-density.toml"
STEPS, POINTS, BATCH, TOKENS = 400, (0, 100, 200, 399), 8, 128
SIZES: dict[str, Any] = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 256}
MODELS: dict[str, Any] = {
    "opt": transformers.OPTConfig(**SIZES, ffn_dim=512, word_embed_proj_dim=128, dropout=0.0),
    "gpt2": transformers.GPT2Config(
        n_embd=128, n_layer=4, n_head=4, vocab_size=256, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    ),
    "llama": transformers.LlamaConfig(**SIZES, intermediate_size=344, num_key_value_heads=2),
}


class Producers(TorchDispatchMode):
    """Notes the operator that made each storage last."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[int, str] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else (result,):
            if isinstance(one, torch.Tensor) and not one._is_view():
                self.of[one.untyped_storage().data_ptr()] = func.overloadpacket.__name__
        return result


def observed(model: Any, batch: Any) -> dict[str, tuple[int, int]]:
    """Nonzero and all elements of saved tensors, by the operator that made them."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    seen: set[int] = set()
    weights = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}
    with Producers() as producers:

        def pack(tensor: Any) -> Any:
            at = tensor.untyped_storage().data_ptr()
            if tensor.is_floating_point() and at not in weights and at not in seen and tensor.numel() > 1000:
                seen.add(at)
                mine = counts[producers.of.get(at, "unknown")]
                mine[0] += int(torch.count_nonzero(tensor))
                mine[1] += tensor.numel()
            return tensor

        with (
            torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
            torch.autocast("cpu", torch.bfloat16),
        ):
            loss = model(input_ids=batch, labels=batch).loss
    loss.backward()
    model.zero_grad()
    return {name: (some, total) for name, (some, total) in counts.items()}


def main() -> None:
    """Train the models one after the other, and write the table."""
    torch.manual_seed(0)
    text = b"".join(path.read_bytes() for path in sorted((ROOT / "docs").rglob("*.md")))
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    table: dict[str, Any] = {
        "source": f"tools/measure_transformer_density.py: {', '.join(MODELS)} of 4 blocks, {STEPS} steps of "
        f"{BATCH} x {TOKENS} bytes of the documents, bf16 autocast; mean of {len(POINTS)} points"
    }
    for name, config in MODELS.items():
        config._attn_implementation = "sdpa"
        config.use_cache = False
        model = transformers.AutoModelForCausalLM.from_config(config).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for step in range(STEPS):
            starts = torch.randint(0, len(data) - TOKENS, (BATCH,))
            batch = torch.stack([data[int(start) : int(start) + TOKENS] for start in starts])
            if step in POINTS:
                for operator, (some, total) in observed(model, batch).items():
                    sums[operator][0] += some
                    sums[operator][1] += total
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(input_ids=batch, labels=batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        densities = {operator: round(some / total, 4) for operator, (some, total) in sorted(sums.items())}
        table[name] = {"loss": round(float(loss.detach()), 3), "densities": densities}
    TARGET.write_text(toml_text(table), encoding="utf-8")


if __name__ == "__main__":
    main()
