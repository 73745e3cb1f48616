"""Writes what a wheel of buddysim contains and needs, as CycloneDX.

    python -m tools.bill_of_materials dist/buddysim-*.whl [-o FILE.cdx.json]

`tools/make_web.py` writes the same of its page. The same content gives the same bytes: no date, no serial number.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.output import write_bytes
from buddysim.base.parsers.zipped import ZippedFile

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def component(name: str, version: str, licence: str, purl: str, content: bytes | None = None) -> dict[str, Any]:
    """Return a component of a list.

    Parameters
    ----------
    licence : an SPDX expression
    purl : its package URL
    content : of its archive, whose hash is listed
    """
    listed: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"expression": licence}],
        "purl": purl,
    }
    return listed if content is None else listed | {"hashes": [_sha256(content)]}


def document(of: Mapping[str, Any], components: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the list of what `of` contains."""
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": of},
        "components": [*components],
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def metadata(wheel: ZippedFile, path: Path) -> Message:
    """Return the fields of a wheel's METADATA; a BuddysimError where it has not one such file."""
    about = [member for member in wheel.members if member.filename.endswith(".dist-info/METADATA")]
    if len(about) != 1:
        raise BuddysimError(f"{path}: {len(about)} files METADATA in it: expected one")
    return HeaderParser().parsestr(wheel.read(about[0]).decode())


def of_wheel(path: Path) -> bytes:
    """Return the list of a wheel: its compiled modules, and the packages that it needs.

    Raises
    ------
    BuddysimError
        where it is no wheel
    """
    with ZippedFile(path, "wheel") as wheel:
        fields = metadata(wheel, path)
        compiled = [
            {"type": "file", "name": member.filename, "hashes": [_sha256(wheel.read(member))]}
            for member in sorted(wheel.members, key=lambda one: one.filename)
            if member.filename.endswith(".so")
        ]
    name, version = str(fields["Name"]), str(fields["Version"])
    own = component(name, version, str(fields["License-Expression"]), f"pkg:pypi/{name}@{version}", path.read_bytes())
    return document(own, [*compiled, *map(_needed, fields.get_all("Requires-Dist") or ())])


def _needed(requirement: str) -> dict[str, Any]:
    """Return a package that isn't in the wheel; the versions that will do, and the extra that needs it, as they are."""
    match = _NAME.match(requirement)
    name = match.group() if match else requirement
    return {
        "type": "library",
        "name": name,
        "scope": "optional" if "extra ==" in requirement else "required",
        "purl": f"pkg:pypi/{name.lower()}",
        "properties": [{"name": "requirement", "value": requirement}],
    }


def _sha256(content: bytes) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}


def main() -> int:
    """Write the list of a wheel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: next to the wheel")
    args = parser.parse_args()
    output = args.output or args.wheel.with_suffix(".cdx.json")
    try:
        write_bytes(output, of_wheel(args.wheel))
    except BuddysimError as error:
        print(f"buddysim: error: {error}", file=sys.stderr)
        return 2
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
