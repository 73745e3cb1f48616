"""Where the bars of vDNN's Fig. 15 stand."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from buddysim.figures import vdnn_fig15


def test_a_networks_gpu_and_host_memory_are_one_bar_next_to_the_baselines() -> None:
    rows = [
        {"network": name, "baseline_gib": 20.0, "gpu_gib": 3.0, "gpu_with_gradients_gib": 4.0, "offloaded": True}
        | {"host_gib": 9.0, "time": 1.25}
        for name in ("first", "second")
    ]
    figure = vdnn_fig15.draw(rows)
    (axes,) = figure.axes
    bars = [(bar.get_x() + bar.get_width() / 2, bar.get_y(), bar.get_height()) for bar in axes.patches]
    baselines, gpu, host = bars[:2], bars[2:4], bars[4:6]
    assert baselines == [pytest.approx((x, 0, 20)) for x in (-0.2, 0.8)]
    assert gpu == [pytest.approx((x, 0, 3)) for x in (0.2, 1.2)]
    assert host == [pytest.approx((x, 3, 9)) for x in (0.2, 1.2)]
    times = [text for text in axes.texts if text.get_text() == "time x 1.25"]
    assert [text.xy for text in times] == [pytest.approx((x, 12)) for x in (0.2, 1.2)]
    plt.close(figure)
