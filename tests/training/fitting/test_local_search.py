"""Steps from a plan."""

from __future__ import annotations

from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.local_search import _changed
from tests.training.fitting.test_ladders import inputs_of


def test_a_step_changes_groups_of_one_class_or_one_group_each_of_two() -> None:
    """Groups 0 and 1 are alike, group 2 is not."""
    inputs = inputs_of([[10, 0], [10, 0], [40, 0]], [[0, 1]] * 3)
    assert [list(one) for one in inputs.classes()] == [[0, 1], [2]]
    steps = [one.choices for one in _changed(Assignment(0, (0, 0, 0)), inputs)]
    alone = {choices for choices in steps if sum(choices) == 1}
    both = {choices for choices in steps if sum(choices) == 2}
    assert (0, 0, 1) in alone
    assert alone & {(1, 0, 0), (0, 1, 0)}
    assert both & {(1, 0, 1), (0, 1, 1)}  # one group of each class
    assert (1, 1, 0) in both  # the whole class
    assert (1, 1, 1) not in steps
