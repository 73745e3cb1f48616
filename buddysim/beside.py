"""Where the folders lie that stand beside the package: `tools/` and `plots/`.

In a clone they are next to `buddysim/`; an installed wheel has them under ``share/buddysim``.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from buddysim.errors import BuddysimError

_PLACES = (Path(__file__).resolve().parent.parent, Path(sysconfig.get_path("data")) / "share" / "buddysim")


def folder(name: str) -> Path:
    """The folder `name` beside the package; its parent is put on the import path.

    Parameters
    ----------
    name : ``"tools"`` or ``"plots"``

    Raises
    ------
    BuddysimError
        where this installation has no such folder
    """
    for place in _PLACES:
        if (place / name / "__init__.py").is_file():
            if str(place) not in sys.path:
                sys.path.insert(0, str(place))
            return place / name
    raise BuddysimError(
        f"{name}/: not found beside the package, nor in {_PLACES[1]}: expected a clone or an installed wheel"
    )
