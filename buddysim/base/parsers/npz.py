"""Arrays of an ``.npz`` file, by name: plain members that hold what the archive's directory says."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input
from buddysim.base.parsers.budget import Budget
from buddysim.base.parsers.refusal import refusal

_ENDING = ".npy"
_MOST_MEMBERS = 1 << 16


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
    where = os.fspath(path)
    begin = f"{where}: not a {what}"
    with open_input(path, what) as file:
        budget = Budget(where, os.fstat(file.fileno()).st_size)
        archive = _opened(file, begin)
        members = archive.infolist()
        if len(members) > _MOST_MEMBERS:
            raise BuddysimError(f"{begin}: {len(members)} arrays: expected at most {_MOST_MEMBERS}")
        for member in members:
            if member.compress_type or not member.filename.endswith(_ENDING):
                raise BuddysimError(f"{begin}: {member.filename!r} in it: expected an array that isn't compressed")
            budget.spend(member.file_size)
        return {
            member.filename.removesuffix(_ENDING): _array(_content(archive, member, begin), member.filename, begin)
            for member in members
        }


def write_arrays(file: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays as `read_arrays` takes them."""
    np.savez(file, **arrays)  # type: ignore[arg-type]


def _opened(file: Any, begin: str) -> Any:
    import zipfile

    try:
        return zipfile.ZipFile(file)
    except Exception as error:
        raise refusal(error, begin) from None


def _content(archive: Any, member: Any, begin: str) -> bytes:
    try:
        content: bytes = archive.read(member)
    except Exception as error:
        raise refusal(error, begin) from None
    return content


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
