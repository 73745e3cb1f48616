"""Recover an activations file from the part of an interrupted capture: its complete points and values."""

from __future__ import annotations

import os

from buddysim.formats.activations.reader import load_activations
from buddysim.formats.activations.writer import ActivationsWriter


def recover_activations(path: str | os.PathLike[str], output: str | os.PathLike[str]) -> str:
    """Write the complete activations of an interrupted file.

    Parameters
    ----------
    path : the part of the capture
    output : the activations file to write

    Returns
    -------
    a description of its contents

    Raises
    ------
    BuddysimError
        if the part cannot be read, or ends before its first point
    """
    activations = load_activations(path, incomplete=True)
    with ActivationsWriter(output, activations.provenance, activations.feature_maps, inputs=[path]) as writer:
        for point in activations.points:
            writer.add_point(point)
        for point_number, map_number in activations.stored_values:
            writer.add_values(point_number, map_number, activations.values(point_number, map_number))
        writer.close(f"recovered: {activations.state}")
    n_points, n_maps, n_values = len(activations.points), len(activations.feature_maps), len(activations.stored_values)
    return f"{n_points} points of {n_maps} feature maps, values of {n_values}"
