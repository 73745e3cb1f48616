"""The CSV file of timings: accepted files, errors with their row, and arbitrary bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.training.cost.timings import (
    COLUMNS,
    COUNTS,
    MeasuredPass,
    parse_timings,
    read_timings,
    timed_kinds,
    timings_text,
)

HEADER = "kind,batch,in_channels,in_h,in_w,out_channels,kernel_h,kernel_w,stride_h,stride_w,pad_h,pad_w,pass,ms\n"
CONV = "conv,16,64,56,56,64,3,3,1,1,1,1,forward,1.25\n"


def test_timings_file_is_read() -> None:
    (timing,) = parse_timings("# mine\n\n" + HEADER + CONV, "mine.csv")
    conv = timing.work.conv
    assert (timing.kind, timing.pass_, timing.ms, timing.group) == ("conv", "forward", 1.25, "3x3")
    assert (conv.out_h, conv.out_w, timing.work.flops) == (56, 56, 2 * 16 * 64 * 64 * 9 * 56 * 56)


def test_columns_in_any_order_and_few_of_them() -> None:
    (timing,) = parse_timings("ms,pass,out_channels,in_channels,batch,kind\n0.5,forward,1000,4096,128,fc\n", "x")
    assert (timing.product.rows, timing.product.cols, timing.product.inner) == (128, 1000, 4096)
    (timing,) = parse_timings("kind,batch,in_channels,in_h,in_w,pass,ms\nrelu,1,8,4,4,backward,0.5\n", "x")
    assert (timing.kind, timing.stride_h, timing.pad_h) == ("relu", 1, 0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no header: expected a row with the columns kind, batch"),
        ("# only a comment\n", "no header"),
        (HEADER, "no measurements after the header"),
        ("kind,batch,pass,ms\n", "row 1: the column in_channels is missing"),
        (HEADER.replace("batch", "btach"), r"row 1: 'btach' is not a column \(nearest: batch\)"),
        (HEADER.replace("in_h", "in_w"), "row 1: the column in_w is there twice"),
        (HEADER + CONV + "conv,16\n", "row 3: expected 14 cells, found 2"),
        (HEADER + CONV.replace("conv", "cnov"), r"row 2: kind: expected one of .* \(nearest: conv\), got 'cnov'"),
        (HEADER + CONV.replace("forward", "fwd"), "row 2: pass: expected one of forward, backward_data"),
        (HEADER + CONV.replace("1.25", "fast"), "row 2: ms: expected a number, got 'fast'"),
        (HEADER + CONV.replace("1.25", "-1"), "row 2: ms: expected more than 0, got '-1'"),
        (HEADER + CONV.replace("1.25", "nan"), "row 2: ms: expected a finite number, got 'nan'"),
        (HEADER + CONV.replace("16", "1.5"), "row 2: batch: expected an integer, got '1.5'"),
        (HEADER + CONV.replace("16", "0"), "row 2: batch: expected at least 1, got '0'"),
        (
            HEADER + CONV.replace("56,56", "1,56").replace("1,1,1,1", "1,1,0,1"),
            "row 2: kernel_h: a window of 3",
        ),
        (HEADER + CONV.replace("56,56,64", "56,56,"), "row 2: out_channels: a conv layer needs it"),
        (HEADER + CONV.replace("conv", "relu").replace("forward", "backward_data"), "row 2: pass: a relu layer has"),
        (HEADER + '"conv,16\n', "row 2: not CSV: unexpected end of data"),
    ],
)
def test_errors_name_the_row(text: str, problem: str) -> None:
    with pytest.raises(BuddysimError, match=problem) as caught:
        parse_timings(text, "mine.csv")
    assert str(caught.value).startswith("mine.csv: ")
    assert "\n" not in str(caught.value)


def test_other_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuddysimError, match="can't read the file of timings: No such file"):
        read_timings(tmp_path / "absent.csv")
    with pytest.raises(BuddysimError, match="can't read the file of timings: Is a directory"):
        read_timings(tmp_path)
    (tmp_path / "binary.csv").write_bytes(b"kind\xff\n")
    with pytest.raises(BuddysimError, match="byte 4 is not UTF-8"):
        read_timings(tmp_path / "binary.csv")


cells = st.one_of(
    st.sampled_from(["conv", "fc", "relu", "forward", "backward", "", "0", "1", "3", "1e9", "nan", "-1", "\x00", "\r"]),
    st.text(max_size=12),
)


contents = st.one_of(st.text(max_size=300), st.lists(st.lists(cells, min_size=12, max_size=15), max_size=4))


@given(contents)
@example("\x00")
@example('"')
@settings(max_examples=100, deadline=None)
def test_any_content_is_read_or_an_error_of_one_line(content: str | list[list[str]]) -> None:
    check_content(content)


@pytest.mark.slow
@given(contents)
@settings(max_examples=1000, deadline=None)
def test_much_content_is_read_or_an_error_of_one_line(content: str | list[list[str]]) -> None:
    check_content(content)


def check_content(content: str | list[list[str]]) -> None:
    text = content if isinstance(content, str) else HEADER + "\n".join(",".join(row) for row in content)
    try:
        timings = parse_timings(text, "fuzz.csv")
    except BuddysimError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert all(isinstance(timing, MeasuredPass) and timing.ms > 0 and timing.shape for timing in timings)
        for timing in timings:
            if timing.kind == "conv":
                assert timing.work.flops > 0


timings_made = st.builds(
    MeasuredPass,
    kind=st.sampled_from(timed_kinds()),
    pass_=st.sampled_from(["forward", "backward"]),
    algorithm=st.sampled_from(["", "winograd"]),
    ms=st.floats(1e-6, 1e6),
    network=st.sampled_from(["", "mine, of course", 'a "net"']),
    layer=st.just(""),
    kernel_h=st.integers(1, 7),
    kernel_w=st.integers(1, 7),
    **{name: st.integers(7, 1000) for name in COUNTS if not name.startswith(("kernel", "pad", "stride"))},
    **{name: st.integers(1, 4) for name in ("stride_h", "stride_w", "pad_h", "pad_w")},
)


@given(st.lists(timings_made, min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_what_is_written_is_read_back(timings: list[MeasuredPass]) -> None:
    text = timings_text(timings, ["source: nowhere"])
    assert parse_timings(text, "back.csv") == timings
    assert text.splitlines()[1] == ",".join(COLUMNS)
