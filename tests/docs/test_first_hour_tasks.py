"""A new user's tasks of the first hour: a page has the commands of each, and they give its answer."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.docs.shell import ROOT, typed

TASKS = tomllib.loads((Path(__file__).parent / "first_hour_tasks.toml").read_text(encoding="utf-8"))["task"]
MIN_TASKS = 20


def test_each_task_has_its_commands_on_its_page() -> None:
    assert len({task["want"] for task in TASKS}) == len(TASKS) >= MIN_TASKS
    for task in TASKS:
        page = re.sub(r" *\\\n *", " ", (ROOT / task["page"]).read_text(encoding="utf-8"))
        missing = [
            command for command in task["commands"] if not re.search(rf"(?m)(^|`){re.escape(command)}($|`)", page)
        ]
        assert not missing, (task["page"], missing)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["want"].replace(" ", "-"))
def test_a_task_is_done_by_its_commands(task: dict[str, Any], tmp_path: Path) -> None:
    lacking = [name for name in task.get("modules", ()) if importlib.util.find_spec(name) is None]
    lacking += [name for name in task.get("programs", ()) if shutil.which(name) is None]
    if lacking:
        pytest.skip(f"needs {', '.join(lacking)}")
    for name in ("docs", "traces", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    printed = typed(task["commands"], tmp_path, 300).stdout
    for pattern in task.get("answer", ()):
        assert re.search(pattern, printed), (pattern, printed)
    for name in task.get("files", ()):
        assert (tmp_path / name).stat().st_size
