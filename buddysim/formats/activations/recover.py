"""What an interrupted capture left, as a whole activations file: its complete points and values."""

from __future__ import annotations

import os

from buddysim.formats.activations.reader import load_activations
from buddysim.formats.activations.writer import ActivationsWriter


def recover_activations(path: str | os.PathLike[str], output: str | os.PathLike[str]) -> str:
    """Writes the activations that an interrupted file holds.

    Parameters
    ----------
    path : what the capture left
    output : the activations file to write

    Returns
    -------
    what it holds, in words

    Raises
    ------
    BuddysimError
        where it can't be read, or ends before its first point
    """
    activations = load_activations(path, incomplete=True)
    with ActivationsWriter(output, activations.provenance, activations.maps, inputs=[path]) as writer:
        for point in activations.points:
            writer.add_point(point)
        for point_number, map_number in activations.stored_values:
            writer.add_values(point_number, map_number, activations.values(point_number, map_number))
        writer.close(f"recovered: {activations.state}")
    return (
        f"{len(activations.points)} points of {len(activations.maps)} maps, values of {len(activations.stored_values)}"
    )
