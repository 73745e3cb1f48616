"""What a scheme's file says of its schemes, for the reference page: source, what moves, what it costs, its check."""

from __future__ import annotations

from typing import NamedTuple


class SchemeFacts(NamedTuple):
    """Facts of the schemes of a file, phrases in Markdown.

    Attributes
    ----------
    source : paper or code that they are made from
    moves : what leaves the GPU, or becomes smaller there
    costs : in time
    applies : networks on which they have something to do
    check : what they are compared with, files of tests or validation
    """

    source: str
    moves: str
    costs: str
    applies: str
    check: str
