"""A declaration of an option makes the signature, the docstring, the argument and the axis."""

from __future__ import annotations

import argparse
import inspect
from dataclasses import dataclass
from typing import Any

import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.base.option import field_options, option_field, same_option
from buddysim.base.signature import described, show_options
from buddysim.cli.option_arguments import add_options
from buddysim.replay.request import ReplayRequest
from buddysim.sweep.axis import option_axis
from buddysim.sweep.engines import replay, training
from buddysim.training import schemes
from buddysim.training.request import TrainingRequest, request_options


@described
@dataclass(frozen=True)
class Request:
    """A request.

    Attributes
    ----------
    other : no option
    """

    subject: str = option_field(str, "what is simulated", metavar="NAME", python="an object")
    count: int = option_field(int, "number of things", 3, metavar="N")
    rule: str = option_field(str, "rule of order", "up", metavar="RULE", choices=("up", "down"))
    quick: bool = option_field(bool, "skip what takes long", False)
    other: int = 0


@dataclass(frozen=True)
class Larger:
    count: int = same_option(Request, "count")


def test_a_docstring_has_the_options_of_its_fields() -> None:
    lines = inspect.getdoc(Request).splitlines()  # type: ignore[union-attr]
    assert lines[4:] == [
        "subject : what is simulated; in Python also an object",
        "count : number of things",
        "rule : rule of order: up, down",
        "quick : skip what takes long",
        "other : no option",
    ]


def test_a_function_shows_options_instead_of_keywords() -> None:
    def run(subject: str, *, progress: int = 0, **keywords: Any) -> int:
        """Run.

        Parameters
        ----------
        progress : of the run

        Returns
        -------
        int
        """
        return progress

    show_options(run, field_options(Request))
    assert [*inspect.signature(run).parameters] == ["subject", "progress", "count", "rule", "quick"]
    assert inspect.signature(run).parameters["count"].default == 3
    text = inspect.getdoc(run)
    assert text is not None
    assert text.index("subject : ") < text.index("quick : ") < text.index("progress : ") < text.index("Returns")


def test_arguments_have_defaults_or_none_with_a_prefix() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, field_options(Request))
    assert vars(parser.parse_args(["x", "--quick"])) == {"subject": "x", "count": 3, "rule": "up", "quick": True}
    with pytest.raises(argparse.ArgumentError, match="invalid choice"):
        parser.parse_args(["x", "--rule", "left"])
    prefixed = argparse.ArgumentParser()
    add_options(prefixed, field_options(Larger), "own_")
    assert vars(prefixed.parse_args([])) == {"own_count": None}


def test_an_option_of_two_classes_is_declared_once() -> None:
    assert field_options(Larger)["count"] == field_options(Request)["count"]
    with pytest.raises(BuddysimError, match=r"rule 'dwon': expected one of up, down \(nearest: down\)"):
        field_options(Request)["rule"].check_choice("rule", "dwon")


@pytest.mark.parametrize(
    ("function", "options", "axes"),
    [
        (buddysim.simulate, field_options(ReplayRequest), replay.axes()),
        (buddysim.simulate_training, {**request_options(), **schemes.options()}, training.axes()),
    ],
)
def test_keywords_and_axes_are_the_fields_with_their_help(function: Any, options: Any, axes: Any) -> None:
    parameters = inspect.signature(function).parameters
    assert parameters.keys() - {"progress"} == options.keys() == axes.keys()
    text = inspect.getdoc(function)
    assert text is not None
    for name, option in options.items():
        assert f"{name} : {option.docstring()}\n" in text + "\n", name
        assert axes[name].help == option.text
        assert option_axis(option).file == axes[name].file
        needed = option.required or name == "batch"  # Python names it, the command line has a default
        assert parameters[name].default == (inspect.Parameter.empty if needed else option.default)


def test_a_request_is_simulated_as_its_keywords_are() -> None:
    from buddysim.training.driver import simulate_request
    from buddysim.training.result import TrainingResult

    request = TrainingRequest.of(network="alexnet-cifar10", batch=4, scheme="vdnn-all-p", memory_bytes=1 << 30)
    result = TrainingResult.from_outcome(simulate_request(request))
    assert (
        result.counters
        == buddysim.simulate_training("alexnet-cifar10", 4, scheme="vdnn-all-p", memory_bytes=1 << 30).counters
    )
