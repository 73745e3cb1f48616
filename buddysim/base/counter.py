"""Definitions of the counters of results, in the package whose code counts them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Counter:
    """The definition of one counter.

    Attributes
    ----------
    name : key in results, for example ``l2.fills``
    unit : unit of its value; empty for text
    text : one sentence that begins with a noun and stands alone
    section : heading under which lists and pages show it
    laws : equations between counters that hold in every result and name this one (`law_holds`)
    """

    name: str
    unit: str
    text: str
    section: str
    laws: tuple[str, ...] = ()


def define(sections: Mapping[str, Mapping[str, tuple[str, str]]], laws: tuple[str, ...] = ()) -> dict[str, Counter]:
    """Return the counters by name, in order.

    Parameters
    ----------
    sections : heading -> name -> (unit, text)
    laws : equations with the counters' names in backticks
    """
    return {counter.name: counter for counter in _counters(sections, laws)}


def _counters(sections: Mapping[str, Mapping[str, tuple[str, str]]], laws: tuple[str, ...]) -> Iterator[Counter]:
    for section, rows in sections.items():
        for name, (unit, text) in rows.items():
            yield Counter(name, unit, text, section, tuple(law for law in laws if f"`{name}`" in law))


def unit_and_text(definition: str) -> tuple[str, str]:
    """Return the parts of a definition "unit: text", as modules and schemes of the replay declare them."""
    unit, _, text = definition.partition(": ")
    return unit, text


def law_holds(law: str, values: Mapping[str, float]) -> bool:
    """Whether a law is true of these counters.

    Parameters
    ----------
    law : "`a` = `b` + `c`" or "`a` <= `b`", with + - / and parentheses on each side; what is divided by 0 is 0
    values : counters by name
    """
    left, relation, right = re.split(" (<?=) ", law.replace("`", ""))
    low, high = (_side(ast.parse(side, mode="eval").body, values) for side in (left, right))
    return math.isclose(low, high, rel_tol=1e-9) or (relation == "<=" and low < high)


def _side(node: ast.expr, values: Mapping[str, float]) -> float:
    if not isinstance(node, ast.BinOp):
        return values[ast.unparse(node)]
    one, other = _side(node.left, values), _side(node.right, values)
    if isinstance(node.op, ast.Div):
        return one / other if other else 0.0
    return one + other if isinstance(node.op, ast.Add) else one - other
