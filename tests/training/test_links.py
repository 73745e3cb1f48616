"""Which link removes a layer's stall."""

from __future__ import annotations

from buddysim.training import TrainingResult, simulate
from buddysim.training.links import layer_stalls


def test_links_are_tried_until_one_has_removed_every_stall() -> None:
    """The oracle's iteration has no stalls, as if its link took no time."""
    stalled, free = (simulate("alexnet", 64, "titan-x", scheme) for scheme in ("vdnn-all-m", "oracle"))
    tried: list[str] = []

    def simulated(link: str) -> TrainingResult:
        tried.append(link)
        return stalled if link == "slow" else free

    rows = layer_stalls(stalled, ["slow", "fast", "faster"], simulated)
    assert tried == ["slow", "fast"]
    assert rows
    assert {row.link for row in rows} == {"fast"}
