"""Runs a script whose Triton launches are captured, in its own process (`buddysim.capture.script_process`)."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from buddysim.base.boundary import run_program


def run(settings: dict[str, Any], script: str) -> int:
    """Run the script under capture; return the exit code."""
    sys.path.insert(0, str(Path(script).resolve().parent))
    return run_program(lambda: _captured(script, settings))


def _captured(script: str, settings: dict[str, Any]) -> int:
    """Run the script under capture; return its exit code."""
    from buddysim.base.errors import BuddysimError
    from buddysim.base.output import Output
    from buddysim.capture.incomplete_output import settle
    from buddysim.capture.launch_window import LaunchWindow
    from buddysim.capture.triton_kernels import captured, require_triton
    from buddysim.capture.triton_kernels.session import TritonCaptureSettings

    code = 0
    window = settings["window"]
    require_triton()
    capture_settings = TritonCaptureSettings(
        settings["architecture"],
        settings["snapshots"],
        None if window is None else LaunchWindow.parse(window),
        settings["grid_sample"],
        settings["compressor"],
        settings["torch_compile"],
        settings["workers"],
        settings["contents_every"],
    )
    part = Output(settings["output"], [script], keep_part=True)
    with captured(
        part, capture_settings, settings["source"], settings["command"], settings["licence"], settings["level"]
    ) as ended:
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
            if isinstance(leave.code, str):
                print(leave.code, file=sys.stderr)
        except KeyboardInterrupt:
            code = 130
        except BuddysimError:
            part.discard()
            raise
        except Exception:
            import traceback

            traceback.print_exc()
            code = 1
        if code:
            ended.append(f"the script ended with exit code {code}: the trace has what it did before")
    settle(part, code, empty=False)
    return code
