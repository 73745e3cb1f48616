"""Names and colours of what holds the GPU's memory, in tables, figures and traces."""

from __future__ import annotations

from collections.abc import Mapping

#: Names in the trace of a timeline: the counter of bytes, and the mark at their peak.
COUNTER = "GPU memory, bytes"
PEAK = "peak of GPU memory"

#: By the key in `memory.by_kind`; neighbours differ in lightness, so that they stay apart in grey.
LABELS: Mapping[str, str] = {
    "weights": "weights",
    "master_weights": "master weights",
    "weight_gradients": "weight gradients",
    "optimizer_state": "optimizer state",
    "gathered_shards": "gathered shards",
    "gradient_buckets": "gradient buckets",
    "inputs": "inputs",
    "feature_maps": "feature maps",
    "encoded_maps": "encoded feature maps",
    "decoded_maps": "decoded feature maps",
    "logits": "logits and loss",
    "gradient_maps": "gradient maps",
    "temporaries": "temporaries",
    "workspace": "workspace",
    "library_workspace": "cuBLAS workspaces",
    "fragmentation": "fragmentation",
    "context": "CUDA context",
}
#: Kinds that the GPU holds in addition to tensors.
NOT_TENSORS = ("library_workspace", "fragmentation", "context")
#: Of recorded operations: all that is saved for backward, whether or not a later layer reads it.
SAVED = "saved activations"

COLOURS: Mapping[str, str] = {
    "weights": "#16202b",
    "master_weights": "#b0b8c0",
    "weight_gradients": "#56687a",
    "optimizer_state": "#8497a8",
    "gathered_shards": "#5b4a8a",
    "gradient_buckets": "#cfc6e6",
    "inputs": "#8a2a4a",
    "feature_maps": "#4a8bc9",
    "encoded_maps": "#1f6b41",
    "decoded_maps": "#a9d8b8",
    "logits": "#c55a11",
    "gradient_maps": "#c8dcef",
    "temporaries": "#c4824e",
    "workspace": "#f4b183",
    "library_workspace": "#7f6000",
    "fragmentation": "#f0c040",
    "context": "#ececec",
}


def label_of(kind: str, recorded: bool) -> str:
    """Return the name of a kind of tensor; `recorded`: of a step that is recorded operation by operation."""
    return SAVED if recorded and kind == "feature_maps" else LABELS[kind]


def colour_of(label: str) -> str:
    """Return the colour of a kind by its name in figures; black of an unknown one."""
    return {**{LABELS[kind]: colour for kind, colour in COLOURS.items()}, SAVED: COLOURS["feature_maps"]}.get(
        label, "#000000"
    )
