"""Settings on a command line, ``--set l2.size=6MiB``."""

from __future__ import annotations

from collections.abc import Iterable

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened


def parse_settings(settings: Iterable[str], option: str = "--set") -> dict[str, object]:
    """``["l2.size=6MiB"]`` as a mapping for `Machine.with_overrides`; the last setting of a key counts.

    Parameters
    ----------
    settings : texts ``KEY=VALUE``
    option : the option's name, for errors
    """
    overrides: dict[str, object] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise BuddysimError(f"{option}: {shortened(setting)}: expected KEY=VALUE, for example l2.size=6MiB")
        overrides[key.strip()] = value.strip()
    return overrides
