"""Definitions of the counters of a training iteration: `explain`, `results` and docs/reference/training-counters.md
show them.

Memory is that of the GPU during a step, the forward or backward computation of one layer. *Feature layers* are the
feature-extraction layers, up to the first FC layer. If a scheme runs out of memory, all other counters are those of the
same iteration with enough memory.
"""

from __future__ import annotations

from typing import Final

from buddysim.base.counter import define

_BYTES: Final = "B"
_MS: Final = "ms"
_AT_PEAK: Final = "at the time of peak memory"

_TIME = {
    "time_ms": (_MS, "Time of one iteration, forward and backward."),
    "time_min_ms": (
        _MS,
        "`time_ms` times the 5 % quantile of measured over predicted time, of rows never fitted of the same kind of "
        "prediction.",
    ),
    "time_max_ms": (_MS, "The same with the 95 % quantile."),
    "gpus": ("count", "GPUs that train together, each on samples of its own."),
    "samples_per_s": ("1/s", "Samples of all GPUs and micro-steps divided by iteration time."),
    "tokens_per_s": ("1/s", "The same in tokens; null for a network without sequences."),
    "performance_vs_oracle": ("fraction", "Oracle time divided by iteration time, 1 at best; null if it does not fit."),
    "oracle_ms": (
        _MS,
        "Time of the same iteration with unlimited GPU memory, the fastest algorithms and no copies; `eager`'s for a "
        "model's configuration.",
    ),
    "compute_ms": (_MS, "Time of computation, recomputation included."),
    "encode_ms": (_MS, "Time of encoding feature maps, a part of `compute_ms`."),
    "decode_ms": (_MS, "Time of decoding feature maps, a part of `compute_ms`."),
    "update_ms": (_MS, "Time of updating the weights, a part of `compute_ms`; 0 without an optimizer."),
    "stall_ms": (_MS, "Time for which the compute stream waits."),
    "stall.offload_ms": (_MS, "Stall time at the end of forward steps until an overlapping offload ends."),
    "stall.prefetch_ms": (_MS, "Stall time at the end of backward steps until an overlapping prefetch ends."),
    "stall.host_codec_ms": (_MS, "Stall time until the host has compressed or decompressed a feature map."),
    "stall.exposed_copy_ms": (_MS, "Stall time during copies that nothing overlaps."),
    "stall.gather_ms": (_MS, "Stall time until weights are gathered from other GPUs."),
    "stall.reduce_ms": (_MS, "Stall time until gradients are reduced over GPUs."),
    "stall.contention_ms": (_MS, "Time by which kernels take longer next to gathers and reductions."),
    "collectives_ms": (_MS, "Time of gathers and reductions, each alone on the link between GPUs."),
}

_FIT = {
    "fits": ("true or false", "Whether GPU memory and pinned host memory suffice for the iteration."),
    "nothing_to_do": ("text", "Reason for which the scheme changes nothing on the network; null if it does something."),
    "oom.shortfall_bytes": (_BYTES, "Shortfall of the first request that fails; 0 if the iteration fits."),
    "oom.peak_excess_bytes": (
        _BYTES,
        "Excess of peak memory over GPU memory; 0 if only fragmentation or the host fails.",
    ),
    "oom.memory": ("text", "Memory that runs out, `gpu` or `host`; null if the iteration fits."),
    "oom.layer": (
        "text",
        "Layer of the first request that fails; null if the iteration fits or no single layer is at fault.",
    ),
    "oom.message": ("text", "Description of the first request that fails; null if the iteration fits."),
}

_MEMORY = {
    "memory.capacity_bytes": (_BYTES, "GPU memory that `fits` is decided on; null for the oracle."),
    "memory.peak_bytes": (_BYTES, "Peak of the GPU memory allocated."),
    "memory.peak_allocated_bytes": (
        _BYTES,
        "Peak of the blocks in use, rounded and with workspaces, as `torch.cuda.max_memory_allocated` says of recorded "
        "steps; `memory.peak_bytes` otherwise.",
    ),
    "memory.by_kind": (
        _BYTES,
        f"Bytes of each kind of tensor {_AT_PEAK}, which add up to it, and in addition `library_workspace` (of "
        "cuBLAS), `fragmentation` (reserved and not requested) and `context` (outside of the allocator).",
    ),
    "memory.saved_by_layer_kind": (
        _BYTES,
        f"Bytes saved for backward {_AT_PEAK} by kind of layer, the name of a module in its block; empty if the "
        "iteration is not one of recorded operations.",
    ),
    "memory.saved_by_block": (
        _BYTES,
        f"Bytes saved for backward {_AT_PEAK} by block, and by module outside of blocks; empty if the iteration is not "
        "one of recorded operations.",
    ),
    "memory.peak_start_ms": (_MS, "Start of the step that reaches peak memory, from the start of the iteration."),
    "memory.peak_phase": ("text", "Pass that reaches peak memory, for example `forward`."),
    "memory.peak_module": ("text", "Module or layer that reaches peak memory."),
    "memory.peak_operation": (
        "text",
        "Operator that reaches peak memory, by PyTorch's name; null if the iteration is not one of recorded "
        "operations.",
    ),
    "memory.time_mean_bytes": (_BYTES, "Mean of the GPU memory allocated, weighted by time."),
    "memory.mean_over_steps_bytes": (_BYTES, "Mean of the GPU memory allocated over steps, each counted once."),
    "memory.baseline_bytes": (
        _BYTES,
        "GPU memory of `baseline-p`, the network-wide allocation with the fastest algorithms.",
    ),
    "memory.baseline_workspace_bytes": (_BYTES, "Workspace of `baseline-p`, the largest of all layers."),
    "memory.weights_bytes": (_BYTES, f"Weights and biases {_AT_PEAK}."),
    "memory.feature_map_bytes": (
        _BYTES,
        f"Feature maps, masks and other tensors saved for backward {_AT_PEAK}; logits of recorded steps apart.",
    ),
    "memory.gradient_bytes": (_BYTES, f"Gradients of weights and of feature maps {_AT_PEAK}."),
    "memory.weight_gradient_bytes": (_BYTES, f"Gradients of weights {_AT_PEAK}."),
    "memory.gradient_map_bytes": (_BYTES, f"Gradients of feature maps {_AT_PEAK}."),
    "memory.workspace_bytes": (_BYTES, f"Workspace of the running CONV algorithm {_AT_PEAK}."),
    "memory.encoded_map_bytes": (_BYTES, f"Encoded feature maps {_AT_PEAK}."),
    "memory.decoded_map_bytes": (_BYTES, f"Decoded copies of feature maps {_AT_PEAK}."),
    "memory.optimizer_state_bytes": (_BYTES, f"Optimizer state {_AT_PEAK}."),
    "memory.stashed_bytes": (
        _BYTES,
        "Bytes that the GPU stores from the forward to the backward pass, encoded or not.",
    ),
    "memory.footprint_bytes": (
        _BYTES,
        "Bytes that the scheme's allocator needs for feature maps, encodings and gradient maps alone, as Gist counts.",
    ),
    "memory.footprint_ratio": (
        "ratio",
        "Gist's memory footprint ratio (MFR) to CNTK's baseline; null for other schemes.",
    ),
    "memory.peak_reserved_bytes": (
        _BYTES,
        "High-water mark of the memory pool: peak memory, fragmentation and workspaces; of recorded networks, what "
        "PyTorch's caching allocator reserves over two iterations.",
    ),
    "host.pinned_capacity_bytes": (
        _BYTES,
        "Host memory that may be pinned, `training.max_pinned_memory` of the machine.",
    ),
    "host.peak_pinned_bytes": (_BYTES, "Peak of the pinned host memory."),
    "host.codec_ms": (_MS, "Time that the host spends compressing and decompressing feature maps."),
}

_COPIES = {
    "offload.bytes": (_BYTES, "Bytes of tensors copied to the host, before compression."),
    "prefetch.bytes": (_BYTES, "Bytes of tensors copied back from the host, before compression."),
    "link.bytes": (_BYTES, "Bytes that cross the link in both directions, after compression."),
}

_FEATURE_LAYERS = {
    "feature_layers.time_ms": (_MS, "Time of the steps of feature layers."),
    "feature_layers.oracle_ms": (_MS, "Time of the steps of feature layers under the oracle."),
    "feature_layers.stall_ms": (_MS, "Stall time at the steps of feature layers."),
    "feature_layers.performance_vs_oracle": (
        "fraction",
        "Oracle time divided by time over feature layers; null if it does not fit.",
    ),
    "feature_layers.memory.peak_bytes": (_BYTES, "Peak of the memory of feature layers during their steps."),
    "feature_layers.memory.time_mean_bytes": (_BYTES, "Mean of the memory of feature layers, weighted by time."),
    "feature_layers.memory.mean_over_steps_bytes": (_BYTES, "Mean of the memory of feature layers over their steps."),
    "feature_layers.memory.baseline_bytes": (_BYTES, "Memory of feature layers under `baseline-p`."),
    "feature_layers.memory.baseline_workspace_bytes": (_BYTES, "Workspace of feature layers under `baseline-p`."),
}

_PER_LAYER = {
    "per_layer.index": ("number", "Position of the layer in execution order."),
    "per_layer.name": ("text", "Name of the layer."),
    "per_layer.kind": ("text", "Kind of the layer."),
    "per_layer.part": ("text", "Part of the network, `features` or `classifier`."),
    "per_layer.in_place": ("true or false", "Whether the layer overwrites its input with its output."),
    "per_layer.input_bytes": (_BYTES, "Size of the layer's input feature maps."),
    "per_layer.output_bytes": (_BYTES, "Size of the layer's output feature map."),
    "per_layer.weights_bytes": (_BYTES, "Size of the layer's weights and biases."),
    "per_layer.workspace_bytes": (_BYTES, "Workspace of the layer, the largest of its passes."),
    "per_layer.forward_workspace_bytes": (_BYTES, "Workspace of the layer's forward pass."),
    "per_layer.forward_memory_bytes": (_BYTES, "GPU memory allocated during the layer's forward step."),
    "per_layer.backward_memory_bytes": (_BYTES, "GPU memory allocated during the layer's backward step."),
    "per_layer.forward_ms": (_MS, "Time of the layer's forward computation."),
    "per_layer.backward_ms": (_MS, "Time of the layer's backward computation."),
    "per_layer.recompute_ms": (_MS, "Time of the layer's recomputation; 0 under schemes without it."),
    "per_layer.encode_ms": (_MS, "Time of encoding the layer's output."),
    "per_layer.decode_ms": (_MS, "Time of decoding the layer's output."),
    "per_layer.update_ms": (_MS, "Time of updating the layer's weights."),
    "per_layer.forward_stall_ms": (_MS, "Stall time at the layer's forward step."),
    "per_layer.backward_stall_ms": (_MS, "Stall time at the layer's backward step."),
    "per_layer.reuse_distance_ms": (
        _MS,
        "Time from the end of the layer's forward step to the start of its backward step; null without a backward "
        "step.",
    ),
    "per_layer.offload_bytes": (_BYTES, "Bytes of the layer's input copied to the host, before compression."),
    "per_layer.prefetch_bytes": (_BYTES, "Bytes of the layer's input copied back, before compression."),
    "per_layer.offload_link_bytes": (_BYTES, "Bytes of the layer's offload that cross the link, after compression."),
    "per_layer.forward_dram_bytes": (_BYTES, "Lower bound of the device memory traffic of the layer's forward pass."),
    "per_layer.backward_dram_bytes": (_BYTES, "Lower bound of the device memory traffic of the layer's backward pass."),
    "per_layer.algorithms": ("names", "CONV algorithm of each pass."),
}

_PROVENANCE = {
    "provenance.buddysim": ("", "Version of buddysim."),
    "provenance.python": ("", "Version of Python."),
    "provenance.numpy": ("", "Version of NumPy."),
    "provenance.simulator_checksum": ("", "SHA-256 over the sources and data that the result depends on."),
    "provenance.scheme": ("", "Name of the training scheme."),
    "provenance.batch": ("", "Samples in the batch."),
    "provenance.network": ("", "Name of the network."),
    "provenance.network_source": ("", "Source of the network's table of layers."),
    "provenance.network_options": (
        "",
        "Options that a model's configuration leaves open, by name; empty for other networks.",
    ),
    "provenance.network_checksum": ("", "SHA-256 over the network's layers."),
    "provenance.machine": ("", "Name of the machine."),
    "provenance.machine_checksum": ("", "SHA-256 over the machine's keys."),
    "provenance.link": ("", "Name of the host link."),
    "provenance.link_d2h_bytes_per_s": ("", "Bandwidth of the host link from the GPU."),
    "provenance.link_h2d_bytes_per_s": ("", "Bandwidth of the host link to the GPU."),
    "provenance.dram_bytes_per_s": ("", "Peak bandwidth of device memory."),
    "provenance.precision": ("", "Number format that layers compute in: `fp32`, `tf32`, `fp16`, `bf16`."),
    "provenance.conv_library": ("", "Version of the CONV library."),
    "provenance.calibrated": ("", "Whether layer times on this GPU are fitted to measured timings."),
    "provenance.time_error": ("", "Error of this kind of prediction, and the GPU that times are predicted from."),
    "provenance.calibration": ("", "Timings that layer times are fitted to, or `uncalibrated` and the reason."),
    "provenance.optimizer": ("", "Optimizer that updates the weights: `none`, `sgd`, `momentum`, `adam`."),
    "provenance.prefetch": ("", "Rule that decides when feature maps are prefetched."),
    "provenance.pool_policy": ("", "Rule by which the memory pool picks a free block."),
    "provenance.accuracy": (
        "",
        "Effect on the trained network's accuracy: `unchanged (lossless)`, a measured difference, or `not measured`.",
    ),
    "provenance.decisions": ("", "Decisions of the scheme, for example the planning passes of `vdnn-dyn`."),
    "provenance.assumptions": ("", "Assumptions by subject."),
}

LAWS = (
    "`stall_ms` = `stall.offload_ms` + `stall.prefetch_ms` + `stall.host_codec_ms` + `stall.exposed_copy_ms` + "
    "`stall.gather_ms` + `stall.reduce_ms` + `stall.contention_ms`",
    "`time_ms` = `compute_ms` + `stall_ms`",
    "`performance_vs_oracle` = `oracle_ms` / `time_ms`",
    "`memory.gradient_bytes` = `memory.weight_gradient_bytes` + `memory.gradient_map_bytes`",
)

#: The counters of every training iteration, by name.
COUNTERS = define(
    {
        "Time": _TIME,
        "Fit": _FIT,
        "Memory": _MEMORY,
        "Copies": _COPIES,
        "Feature layers, as the vDNN paper counts": _FEATURE_LAYERS,
        "Layers": _PER_LAYER,
        "Provenance": _PROVENANCE,
    },
    LAWS,
)
