"""Text from files is one printable line in messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.base.terminal import LONGEST_LINE, one_line


def test_controls_directions_and_bytes_are_escaped() -> None:
    assert one_line("a\x1b[2Jb\u202ec\u2066\x07\udcff\U000e0001") == "a\\x1b[2Jb\\u202ec\\u2066\\x07\\xff\\U000e0001"
    assert one_line(" two\n\tlines\x0b\u2028 ") == "two lines"
    assert one_line("Größe 尺寸 – ×") == "Größe 尺寸 – ×"


def test_a_long_text_keeps_its_ends() -> None:
    shown = one_line("begin " + "x" * 10**7 + " end")
    assert len(shown) == LONGEST_LINE - 1
    assert shown.startswith("begin xxx")
    assert shown.endswith("xxx end")


@given(st.text(st.characters()))
def test_any_text_is_one_printable_line(text: str) -> None:
    shown = str(BuddysimError(text * 50))
    assert shown.isprintable()
    assert len(shown) <= LONGEST_LINE
