"""Names of schemes on the command line: of one that another command knows, the error names that command."""

from __future__ import annotations

#: The command that simulates the schemes of each kind.
_COMMANDS = {"replay scheme": "run", "training scheme": "train"}


def scheme_names(text: str, kind: str) -> list[str]:
    """Return the names in a text separated by commas, each once.

    Raises
    ------
    BuddysimError
        where no scheme of the kind has a name
    """
    from buddysim.base.kinds import registry

    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in registry(kind):
            _refuse_others(name, kind)
        registry(kind).find(name)
    return names


def _refuse_others(name: str, kind: str) -> None:
    """Refuse the name, or the family, of a scheme of another kind."""
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import hint, shortened
    from buddysim.base.kinds import registry

    for other, command in _COMMANDS.items():
        family = [known for known in registry(other).names() if known == name or known.startswith(f"{name}-")]
        if other != kind and family:
            nearest = hint(name, registry(kind).names())
            raise BuddysimError(f"{kind} {shortened(name)}: unknown: {family[0]} is a {other}, of {command!r}{nearest}")
