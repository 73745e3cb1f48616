"""What the page's worker calls: texts in, texts out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from buddysim.base.output import write_text
from buddysim.base.parsers.json_text import loads
from buddysim.browser.answer import AnswerPart, answer
from buddysim.browser.choices import choices
from buddysim.browser.highs import solver
from buddysim.browser.plan import find_plan
from buddysim.training.fitting.mixed_program import solve_with_scipy

_LARGEST_FILE = 5 * 2**20
_FOLDER = Path("/tmp/question")


def choices_text() -> str:
    """Return `choices` as JSON."""
    return json.dumps(choices())


class Steps:
    """A question that is answered step by step.

    Parameters
    ----------
    parts : the answer
    """

    def __init__(self, parts: Iterator[AnswerPart]) -> None:
        self._parts = parts

    def next_text(self) -> str | None:
        """Return the next part as JSON; None at the end."""
        part = next(self._parts, None)
        return None if part is None else json.dumps(part)


def steps(
    question_text: str,
    files_text: str,
    report: Callable[[str], None] | None = None,
    run_highs: Callable[[str, int, float], str] | None = None,
) -> Steps:
    """Begin to answer a question, or to find its plan.

    Parameters
    ----------
    question_text : texts by field, as JSON; ``"command"``: ``"train"`` or ``"fit"``
    files_text : contents of the files that the question names, by their names, as JSON
    report : is called with what the page shows meanwhile, as JSON
    run_highs : solves the integer programs of ``"fit"``: the `run` of `highs.solver`
    """
    question: dict[str, str] = loads(question_text, "the question")
    command = question.pop("command", "train")
    _FOLDER.mkdir(exist_ok=True)
    for name, content in loads(files_text, "the files of the question").items():
        if len(content) > _LARGEST_FILE:
            line = f"{name}: {len(content)} characters: expected at most {_LARGEST_FILE}"
            return Steps(iter([{"part": "error", "line": line, "field": "model"}]))
        write_text(_FOLDER / name, content)
        question["model"] = name
    if command == "train":
        return Steps(answer(question, _FOLDER))
    show = None if report is None else lambda part: report(json.dumps(part))
    solve = solve_with_scipy if run_highs is None else solver(run_highs)
    return Steps(find_plan(question, _FOLDER, show, solve))
