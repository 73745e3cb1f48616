"""Launches selected by `--launches` and `--total-launches`, and the screen of `--list-launches`."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.capture.launch_window import CapturePlan, LaunchWindow, equidistant_launches, plan_capture
from buddysim.capture.opencl.listing import LaunchListing
from buddysim.capture.opencl.wire import MessageType, ReceivedMessage


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("750:753", (750, 753)),
        ("750", (750, 751)),
        ("750:", (750, None)),
        (":3", (0, 3)),
        (" 7 : 9 ", (7, 9)),
        (":", (0, None)),
    ],
)
def test_windows(text: str, window: tuple[int, int | None]) -> None:
    assert LaunchWindow.parse(text) == LaunchWindow(*window)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a launch or FIRST:END"),
        ("a:3", "expected a launch or FIRST:END"),
        ("1:2:3", "expected a launch or FIRST:END"),
        ("-1:3", "expected a launch or FIRST:END"),
        ("1.5", "expected a launch or FIRST:END"),
        ("9" * 13, "expected a launch or FIRST:END"),
        ("3:3", "no launch in it"),
        ("3:2", "no launch in it"),
    ],
)
def test_bad_windows(text: str, problem: str) -> None:
    with pytest.raises(BuddysimError, match=problem):
        LaunchWindow.parse(text)


@pytest.mark.parametrize(("text", "least"), [("10:13", 13), ("10", 11), ("10:", 11), (":", 1)])
def test_run_without_window_is_an_error(text: str, least: int) -> None:
    window = LaunchWindow.parse(text)
    assert window.missing(least) is None
    assert f"expects at least {least} launches, the run has {least - 1}" in str(window.missing(least - 1))
    with pytest.raises(BuddysimError, match="expects at least"):
        plan_capture(10, window, least - 1)
    assert plan_capture(10, window, least).window == window


@given(st.integers(1, 10**12), st.integers(2, 1000))
def test_stated_points_are_at_equal_distances_from_beginning_to_end(launches: int, snapshots: int) -> None:
    points = equidistant_launches(launches, snapshots)
    assert (points[0], points[-1]) == (0, launches)
    assert len(points) == min(snapshots, launches + 1)
    for number, point in enumerate(points if launches >= snapshots else ()):
        assert abs(point * (snapshots - 1) - number * launches) * 2 <= snapshots - 1
    steps = {b - a for a, b in itertools.pairwise(points)}
    assert max(steps) - min(steps) <= 1


def test_plans() -> None:
    assert plan_capture(10, None, None) == CapturePlan(40)
    assert plan_capture(3, None, 100) == CapturePlan(3, None, (0, 50, 100))
    assert plan_capture(1, None, 100).points == (100,)
    assert plan_capture(0, LaunchWindow(1, 2), 100) == CapturePlan(0, LaunchWindow(1, 2))


def test_the_list_of_launches() -> None:
    listing = LaunchListing()
    launches = [("init", 64, 8), *[("step", 128, 8)] * 3, ("step", 128, 0), ("init", 64, 8)]
    for number, (kernel, work_items, group) in enumerate(launches):
        numbers = (number, work_items, 1, 1, group, 1 if group else 0, 1 if group else 0)
        listing.receive(ReceivedMessage(MessageType.NATIVE, numbers, memoryview(kernel.encode())))
    listing.receive(ReceivedMessage(MessageType.DONE, struct.unpack("<Q", struct.pack("<Q", 6)), memoryview(b"")))
    assert [line.split(maxsplit=2) for line in listing.lines()][1:] == [
        ["0", "64x1x1", "8x1x1  init"],
        ["1:4", "128x1x1", "8x1x1  step"],
        ["4", "128x1x1", "PoCL's choice  step"],
        ["5", "64x1x1", "8x1x1  init"],
    ]
