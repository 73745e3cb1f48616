"""Runs a training script under observation, in its own process: ``script.py SETTINGS.json SCRIPT ARGS``.

The import path is the script's. This package is imported from its folder, which is never in the path.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from buddysim.capture.torch.observer import Observer


def _import_package(folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "buddysim", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["buddysim"] = package
    spec.loader.exec_module(package)


def start_observer(settings: dict[str, Any]) -> Observer:
    from buddysim.base.plugins import load_plugin
    from buddysim.capture.torch.observer import Observer, ObserverSettings
    from buddysim.capture.torch.spool import Spool

    for file in settings["plugins"]:
        load_plugin(file)
    observer = Observer(Spool(Path(settings["spool"])), ObserverSettings(**settings["settings"]))
    observer.start()
    return observer


def main() -> None:
    settings_path, script, *arguments = sys.argv[1:]
    del sys.path[0]  # this file's folder
    settings = json.loads(Path(settings_path).read_text())
    _import_package(Path(settings["package"]))
    from buddysim.base.boundary import ending, inside

    def leave(error: BaseException) -> NoReturn:
        sys.exit(ending(error).tell())

    observer = inside(lambda: start_observer(settings), leave)
    process = os.getpid()
    finished = False

    def leave_at_exit(error: BaseException) -> NoReturn:
        os._exit(ending(error).tell())  # Python would go on with the script's exit code

    def stop() -> None:
        if os.getpid() == process:
            end = "finished" if finished else "the script left without an end"
            inside(lambda: observer.stop(end, finished=finished), leave_at_exit)

    atexit.register(stop)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
        finished = True
    except SystemExit as left:
        finished = left.code in (None, 0)
        raise


if __name__ == "__main__":
    main()
