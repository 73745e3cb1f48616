"""Measures a GPU: writes its table of curves and its machine file into one folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.output import check_outputs, write_text
from buddysim.machine import Machine
from buddysim.measure.curve_table import measure_curves
from buddysim.measure.gpu import MicrobenchmarkGpu
from buddysim.measure.machine_file import fit_machine_file, nearest_preset
from buddysim.validation.curve.curve_data import load_curves

TABLE, MACHINE = "gpu_curves.csv", "machine.toml"


def measure_gpu(
    folder: Path, like: str | None, open_gpu: Callable[[], MicrobenchmarkGpu], progress: Callable[[str], object]
) -> list[Path]:
    """Measure a GPU into a folder, which is created; curves of an interrupted run are not measured again.

    Parameters
    ----------
    folder : of the table and the machine file
    like : the preset whose values stay where nothing was measured; None: the one of the GPU's model
    open_gpu : returns the GPU
    progress : called with a line after every curve, and for keys that keep the preset's values

    Returns
    -------
    the files written

    Raises
    ------
    BuddysimError
            no GPU, no preset for its model, or a file that can't be read or written
    """
    if like is not None and like not in Machine.presets():
        raise BuddysimError(f"--like {like}: expected a preset, one of {', '.join(Machine.presets())}")
    gpu = open_gpu()
    like = like or nearest_preset(gpu.about.name)
    folder.mkdir(parents=True, exist_ok=True)
    table, file = folder / TABLE, folder / MACHINE
    check_outputs([table, file])
    progress(f"{gpu.about.name}: keys that can't be measured are those of {like}; an interrupted run can be continued")
    clock_mhz = measure_curves(gpu, table, progress)
    machine, unchanged = fit_machine_file(gpu.about, clock_mhz, load_curves(table), like)
    for text in unchanged:
        progress(f"warning: {text}")
    write_text(file, machine.to_toml())
    return [table, file]
