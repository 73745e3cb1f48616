"""Runs a training script under observation, in its own process (`buddysim.capture.script_process`)."""

from __future__ import annotations

import atexit
import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from buddysim.base.boundary import ending, inside

if TYPE_CHECKING:
    from buddysim.capture.torch.observer import Observer


def start_observer(settings: dict[str, Any]) -> Observer:
    from buddysim.base.plugins import load_plugin
    from buddysim.capture.torch.observer import Observer, ObserverSettings
    from buddysim.capture.torch.spool import Spool

    for file in settings["plugins"]:
        load_plugin(file)
    observer = Observer(Spool(Path(settings["spool"])), ObserverSettings(**settings["settings"]))
    observer.start()
    return observer


def run(settings: dict[str, Any], script: str) -> int:
    """Run the script; what it does at its end is observed too."""

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
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
        finished = True
    except SystemExit as left:
        finished = left.code in (None, 0)
        raise
    return 0
