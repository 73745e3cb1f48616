"""What the page's worker calls: texts in, texts out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from buddysim.base.output import write_text
from buddysim.browser.answer import AnswerPart, answer
from buddysim.browser.choices import choices

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


def steps(question_text: str, files_text: str) -> Steps:
    """Begin to answer a question.

    Parameters
    ----------
    question_text : texts by field, as JSON
    files_text : contents of the files that the question names, by their names, as JSON
    """
    question: dict[str, str] = json.loads(question_text)
    _FOLDER.mkdir(exist_ok=True)
    for name, content in json.loads(files_text).items():
        if len(content) > _LARGEST_FILE:
            line = f"{name}: {len(content)} characters: expected at most {_LARGEST_FILE}"
            return Steps(iter([{"part": "error", "line": line, "field": "model"}]))
        write_text(_FOLDER / name, content)
        question["model"] = name
    return Steps(answer(question, _FOLDER))
