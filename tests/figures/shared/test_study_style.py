"""The bars of a study's figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from buddysim.figures.shared.study_style import draw_bars


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("a",), [[0.0, 1.0]]),
        (("a", "b"), [[-0.21, 0.79], [0.21, 1.21]]),
        (("a", "b", "c"), [[-0.28, 0.72], [0, 1], [0.28, 1.28]]),
    ],
)
def test_bars_of_a_group_fill_the_same_width_around_its_centre(
    labels: tuple[str, ...], expected: list[list[float]]
) -> None:
    """All bars of a group take 0.84 of the distance to the next."""
    figure, axes = plt.subplots()
    positions = draw_bars(axes, ["first", "second"], {label: [1.0, 2.0] for label in labels})
    assert [pytest.approx(own) for own in expected] == positions
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0.84 / len(labels)] * (2 * len(labels)))
    plt.close(figure)
