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
from typing import TYPE_CHECKING, Any

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
    from buddysim.base.errors import BuddysimError

    try:
        observer = start_observer(settings)
    except BuddysimError as error:
        print(f"buddysim: error: {error}", file=sys.stderr)
        sys.exit(2)
    process = os.getpid()
    finished = False

    def stop() -> None:
        if os.getpid() == process:
            observer.stop("finished" if finished else "the script left without an end", finished=finished)

    atexit.register(stop)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
        finished = True
    except SystemExit as leave:
        finished = leave.code in (None, 0)
        raise


if __name__ == "__main__":
    main()
