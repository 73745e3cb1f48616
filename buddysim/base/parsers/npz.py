"""Arrays of an ``.npz`` file, by name: plain members that hold what the archive's directory says."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.refusal import refusal
from buddysim.base.parsers.zipped import ZippedFile

_ENDING = ".npy"


def read_arrays(path: str | os.PathLike[str], what: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file.

    They aren't compressed, so that they take no more than the file has: it is refused by its directory's sizes.

    Parameters
    ----------
    path : the file
    what : the kind of file, for messages

    Raises
    ------
    BuddysimError
        no such file, a damaged one, compressed arrays, or more than the file can hold
    """
    begin = f"{os.fspath(path)}: not a {what}"
    with ZippedFile(path, what, is_plain=True) as archive:
        return {
            member.filename.removesuffix(_ENDING): _array(archive.read(member), member.filename, begin)
            for member in archive.members
            if member.filename.endswith(_ENDING)
        }


def write_arrays(file: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays as `read_arrays` takes them."""
    np.savez(file, **arrays)  # type: ignore[arg-type]


def _array(content: bytes, name: str, begin: str) -> npt.NDArray[Any]:
    """Return the array of a member; its header is read before memory is taken for what it says."""
    import io

    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        held = dtype.itemsize * math.prod(shape) if not dtype.hasobject else -1
    except Exception as error:
        raise refusal(error, f"{begin}: {name!r}") from None
    values = content[file.tell() :]
    if fortran or held != len(values):
        raise BuddysimError(f"{begin}: {name!r}: {len(values)} bytes of values: its head states others")
    return _as_array(values, dtype, shape, f"{begin}: {name!r}")


def _as_array(values: bytes, dtype: Any, shape: tuple[int, ...], begin: str) -> npt.NDArray[Any]:
    try:
        return np.frombuffer(values, dtype).reshape(shape)
    except Exception as error:
        raise refusal(error, begin) from None
