"""Documented examples show something: the number that each is about changes by more than 5 % and its range.

`shown_examples.toml` lists them. A command that sets or varies something in a document that a reader types from must be
in the list, and each of the list must be in its document.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.docs import shown
from tests.docs.generated import text_of
from tests.docs.shown import MIN_CHANGE, ROOT, change

LIST = tomllib.loads((Path(__file__).parent / "shown_examples.toml").read_text(encoding="utf-8"))
KINDS = ("run", "schemes", "sweep", "elsewhere", "own_files")
ENTRIES = [(kind, entry) for kind in KINDS for entry in LIST.get(kind, [])]


def of(kind: str) -> list[Any]:
    """Entries as parameters: as they are where they are quick, and with the mark of slow tests."""
    entries = LIST.get(kind, [])
    slow = [pytest.param(entry, True, id=entry["command"], marks=pytest.mark.slow) for entry in entries]
    quick = [entry for entry in entries if "quick" in entry]
    return slow + [pytest.param(entry, False, id=entry["command"] + " (quick)") for entry in quick]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a checkout, in which files can be written."""
    for name in ("traces", "docs", "tests", "examples", "plots"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_has_every_command_that_sets_something_and_no_other() -> None:
    listed = {(page, entry["command"]) for _, entry in ENTRIES for page in entry["documents"]}
    present = {
        (document.relative_to(ROOT).as_posix(), shlex.join(words))
        for document in shown.documents()
        for words in shown.setting_commands(text_of(document))
    }
    normal = {(page, shlex.join(shlex.split(command))) for page, command in listed}
    assert sorted(present - normal) == []
    assert sorted(normal - present) == []


@pytest.mark.parametrize(("kind", "entry"), [pytest.param(*one, id=one[1]["command"]) for one in ENTRIES])
def test_what_an_entry_names_is_there(kind: str, entry: dict[str, Any]) -> None:
    for page in entry["documents"]:
        typed = [shlex.join(words) for words in shown.commands((ROOT / page).read_text(encoding="utf-8"))]
        for command in (*entry.get("before", []), *([entry["against"]] if "against" in entry else [])):
            assert shlex.join(shlex.split(command)) in typed, (page, command)
    if kind == "own_files":
        assert re.search(r" (out/\w+/|mine)", entry["command"])
    if kind == "elsewhere":
        file, _, name = entry["test"].partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_the_commands_of_a_document_are_seen() -> None:
    """The checks above see an example of each fault."""
    text = "python -m buddysim run a.bin \\\n  --set b=1 > c\n`python -m buddysim sweep FILE`\n"
    assert shown.setting_commands(text + "python -m buddysim run d\n") == [["run", "a.bin", "--set", "b=1"]]
    assert shown.setting_commands("python -m buddysim sweep s.toml --dry-run\n") == [["sweep", "s.toml"]]
    assert shown.less(["run", "a", "--set", "b=1", "-c"], ["--set", "b=1"]) == ["run", "a", "-c"]
    assert shown.changes_along([{"x": 1, "t": 2.0}, {"x": 2, "t": 3.0}], "x", ["x"], "t") == [0.5]
    assert round(change(1.1, 1.0), 6) == round(change(1.0, 1.1), 6) == 0.1


@pytest.fixture(scope="module")
def results() -> dict[tuple[str, str], dict[str, Any]]:
    """Results by command and sensitivity: several entries compare with the same one."""
    return {}


@pytest.mark.parametrize(("entry", "as_printed"), of("run"))
def test_a_setting_changes_the_number(
    entry: dict[str, Any], as_printed: bool, checkout: Path, results: dict[tuple[str, str], dict[str, Any]]
) -> None:
    """Where the command prints a sensitivity range, the change is larger, and the other number is outside."""
    words = shlex.split(entry["command"])
    against = shlex.split(entry["against"]) if "against" in entry else shown.less(words, shlex.split(entry["less"]))
    scheme, quantity = entry.get("scheme", "buddy"), entry.get("quantity", "slowdown.ratio")
    has_range = as_printed and quantity == "slowdown.ratio" and "--no-sensitivity" not in words
    for command in entry.get("before", []):
        shown.printed(shlex.split(command), checkout)
    rows = []
    for variant, sensitivity in ((words, "all" if has_range else "none"), (against, "none")):
        key = (shlex.join(word for word in variant if word != "--no-sensitivity"), sensitivity)
        if key not in results:
            results[key] = shown.printed(variant, checkout, sensitivity)
        rows.append(results[key] if words[0] == "profile" else results[key][scheme])
    value, other = (float(row[quantity]) for row in rows)
    assert change(value, other) > MIN_CHANGE, (value, other)
    for page in entry["documents"] if "says" in entry else ():
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert entry["says"].format(row=rows[0], other=rows[1], speedup=1 / value, before=1 / other) in text, page
    if has_range:
        low, high = rows[0]["slowdown.min"], rows[0]["slowdown.max"]
        assert abs(value - other) > high - low
        assert not low <= other <= high


@pytest.mark.parametrize(("entry", "as_printed"), of("schemes"))
def test_schemes_differ(entry: dict[str, Any], as_printed: bool, checkout: Path) -> None:
    words = shlex.split(entry["command"])
    result = shown.printed(words, checkout)
    first, second = (result[scheme] for scheme in entry["between"])
    assert change(first[entry["quantity"]], second[entry["quantity"]]) > MIN_CHANGE


@pytest.mark.parametrize(("entry", "as_printed"), of("sweep"))
def test_every_axis_changes_the_number(entry: dict[str, Any], as_printed: bool, checkout: Path) -> None:
    rows = [
        row for row in shown.swept(shlex.split(entry["command"]), checkout)
        if all(str(row.get(key)).endswith(str(value)) for key, value in entry.get("where", {}).items())
    ]  # fmt: skip
    for axis in entry["axes"]:
        changes = shown.changes_along(rows, axis, entry["axes"], entry.get("quantity", "time_ps"))
        assert max(changes, default=0.0) > MIN_CHANGE, (axis, changes)
