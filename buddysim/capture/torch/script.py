"""Runs a training script under observation, in a process of its own: ``script.py SETTINGS.json SCRIPT ARGS``."""

from __future__ import annotations

import atexit
import json
import os
import sys
from pathlib import Path
from typing import Any


def _observe(settings_path: str) -> Any:
    """Starts to watch; leaves nothing of ours on the import path in front of the script's own modules."""
    said = json.loads(Path(settings_path).read_text())
    sys.path.insert(0, said["package_parent"])
    from buddysim.capture.torch.observer import Observer, Settings
    from buddysim.capture.torch.spool import Spool

    sys.path.remove(said["package_parent"])  # the folder may hold modules with the names of the script's own
    observer = Observer(Spool(Path(said["spool"])), Settings(**said["settings"]))
    observer.start()
    return observer


def main() -> None:
    settings_path, script, *arguments = sys.argv[1:]
    del sys.path[0]  # this file's folder
    try:
        observer = _observe(settings_path)
    except Exception as error:
        if type(error).__name__ != "BuddysimError":
            raise
        print(f"buddysim: error: {error}", file=sys.stderr)
        sys.exit(2)
    process = os.getpid()
    ended: list[str] = []

    def finish() -> None:
        if os.getpid() == process:
            observer.stop(ended[0] if ended else "the script left without an end", finished=bool(ended))

    atexit.register(finish)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    import runpy

    try:
        runpy.run_path(script, run_name="__main__")
        ended.append("finished")
    except SystemExit as leave:
        if leave.code in (None, 0):
            ended.append("finished")
        raise


if __name__ == "__main__":
    main()
