"""Stalls of a training's layers under vDNN, and with a faster link."""

from buddysim.training import simulate

for link in ("pcie3", "pcie4", "nvlink2"):
    result = simulate("vgg16-vdnn", 128, machine="titan-x", scheme="vdnn-conv-p", link=link)
    stalls = {row["name"]: row["forward_stall_ms"] + row["backward_stall_ms"] for row in result.per_layer}
    longest = sorted(stalls, key=lambda name: -stalls[name])[:3]
    shown = ", ".join(f"{name} {stalls[name]:.1f} ms" for name in longest if stalls[name] >= 0.05) or "none"
    print(f"{link:8} {result.counters['time_ms']:,.1f} ms, of it stalls {result.counters['stall_ms']:.1f} ms: {shown}")
