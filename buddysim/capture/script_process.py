"""Runs a script by a module of this package, in a process of its own: ``script_process.py SETTINGS.json SCRIPT ARGS``.

The import path is the script's: this package is imported from its folder, which is never in the path. The settings
name the module, ``runner``, whose `run` gets settings and script.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import NoReturn


def _import_package(folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "buddysim", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["buddysim"] = package
    spec.loader.exec_module(package)


def main() -> int:
    settings_path, script, *arguments = sys.argv[1:]
    del sys.path[0]  # this file's folder
    settings = json.loads(Path(settings_path).read_text())
    _import_package(Path(__file__).resolve().parents[1])
    from buddysim.base.boundary import ending, inside

    def leave(error: BaseException) -> NoReturn:
        sys.exit(ending(error).tell())

    runner = inside(lambda: importlib.import_module(settings["runner"]), leave)
    sys.argv = [script, *arguments]
    code: int = runner.run(settings, script)
    return code


if __name__ == "__main__":
    sys.exit(main())
