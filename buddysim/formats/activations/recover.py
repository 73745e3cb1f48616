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
    found = load_activations(path, incomplete=True)
    with ActivationsWriter(output, found.provenance, found.maps, inputs=[path]) as writer:
        for point in found.points:
            writer.add_point(point)
        for point_number, map_number in found.stored_values:
            writer.add_values(point_number, map_number, found.values(point_number, map_number))
        writer.close(f"recovered: {found.state}")
    return f"{len(found.points)} points of {len(found.maps)} maps, values of {len(found.stored_values)}"
