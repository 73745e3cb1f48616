"""Any input gives a trace, or an error of one line."""

from __future__ import annotations

import contextlib
import lzma
import random
from pathlib import Path

import pytest

from buddysim import cli
from buddysim.base.errors import BuddysimError
from buddysim.importers.accelsim import AccelsimImportOptions, import_accelsim, parse_snapshot
from buddysim.trace import open_trace, verify_trace

SAMPLES = Path(__file__).parent / "samples"
GROUPED = ["v1", "v2", "v6", "fork"]


def write_run(folder: Path, kernel: bytes, name: str = "kernel-1.traceg", listed: str | None = None) -> Path:
    """Write a kernelslist of one kernel."""
    (folder / name).write_bytes(kernel)
    (folder / "kernelslist.g").write_text(f"{listed or name}\n")
    return folder / "kernelslist.g"


def refusal(kernelslist: Path, tmp_path: Path, options: AccelsimImportOptions | None = None) -> str:
    """Return the error of the import, which is one line and leaves no file."""
    before = set(tmp_path.iterdir())
    with pytest.raises(BuddysimError) as caught:
        import_accelsim(kernelslist, tmp_path / "out.bin", options)
    message = str(caught.value)
    assert "\n" not in message
    assert message
    assert set(tmp_path.iterdir()) == before
    return message


def changed(old: str, new: str) -> bytes:
    text = (SAMPLES / "fork" / "kernel-2.traceg").read_text()
    assert old in text
    return text.replace(old, new).encode()


STORE = "0000 00000001 0 STG.E 2 R2 R9 4 2 0x7f0000000000 0 STORE_DATA I32 1 REG0:T0:0x00000005"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("-grid dim = (1,1,1)\n", "", "'-grid dim' is missing"),
        ("(1,1,1)", "(0,1,1)", "expected numbers from 1"),
        ("(1,1,1)", "(65536,65536,65536)", "product up to"),
        ("(32,1,1)", "(32,1)", "expected (x,y,z)"),
        ("version = 5", "version = 7", "tracer version '7': expected 1 to 6"),
        ("version = 5", "version = x", "tracer version 'x'"),
        ("-nregs = 16", "-nregs = sixteen", "expected a number"),
        ("-nregs = 16", "nregs", "expected '-key = value'"),
        ("0x00007e0001000000", "0xffffffffffffffff", "expected at most"),
        ("#BEGIN_TB", "#BEGIN_TB\n#BEGIN_TB", "expected #END_TB"),
        ("#END_TB", "", "ends inside a thread block"),
        ("#END_TB", "#END_TB\n#END_TB", "#END_TB without a thread block"),
        ("thread block = 0,0,0", "thread block = 1,0,0", "inside the grid"),
        ("thread block = 0,0,0", "thread block = 0,0", "inside the grid"),
        ("thread block = 0,0,0", "", "a warp before"),
        ("warp = 0", "warp = 1", "below 1"),
        ("warp = 0", "warp = -1", "expected 'warp = number'"),
        ("insts = 1", "insts = 2", "are missing"),
        ("insts = 1", "insts = 0", "more instructions than"),
        ("insts = 1", "insts = 99999999999999999999", "expected 'insts = number'"),
        (STORE, "0000 0000001 0 STG.E 0 0 0", "8 hexadecimal digits"),
        (STORE, "xyz 00000001 0 STG.E 0 0 0", "instruction's address"),
        (STORE, "0000 00000001 99 R1 STG.E 0 0 0", "number of registers"),
        (STORE, "0000 00000001 1 Q1 STG.E 0 0 0", "expected a register"),
        (STORE, "0000 00000001 1 R300 STG.E 0 0 0", "expected a register"),
        (STORE, "0000 00000001 0 stg 0 0 0", "expected an opcode"),
        (STORE, "0000 00000001 0 STG.E 0 x 0", "access width"),
        (STORE, "0000 00000001 0 STG.E 0 4 3 0x0 0", "address mode"),
        (STORE, "0000 00000001 0 STG.E 0 4 0", "address of each active lane"),
        (STORE, "0000 00000003 0 STG.E 0 4 2 0x1000 0", "immediate"),
        (STORE, "0000 00000007 0 STG.E 0 4 2 0x1000 4 x 0", "expected 2 distances"),
        (STORE, "0000 00000001 0 STG.E 0 4 1 0xfffffffffffffff0 4 0", "expected one below"),
        (STORE, "0000 00000003 0 STG.E 0 4 1 0x1000 -999999999999999999 0", "expected one below"),
        (STORE, "0000 00000001 0 STG.E 0 4 2 0x1000 0 junk", "expected the end of the line"),
        (STORE, "0000 00000001 0 STG.E 0 4 2 0x1000 0 STORE_DATA I32 1 REG0:T99:0x1", "REGr:Tt:value"),
        (STORE, "0000 00000001 0 STG.E 0 4 2 0x1000 0 STORE_DATA I32 1 REG7:T0:0x1", "expected 0 to 0"),
        (STORE, "0000 00000001 0 STG.E 0 4 2 0x1000 0 STORE_DATA F32 1 REG0:T0:1.2.3", "expected a value"),
        (STORE, "0000 00000001 0 STG.E 0 4 2 0x1000 0 STORE_DATA F32 1 REG0:T0:1e39", "expected a value of 32 bits"),
        (STORE, "0000 00000001 0 UBLKCP 0 4 2 0x1000 0", "'UBLKCP' is not supported"),
        ("#traces format = ...", "#x\n" + "y" * 2_000_000, "outside a thread block"),
    ],
)
def test_malformed_kernels_are_errors_of_one_line(old: str, new: str, expected: str, tmp_path: Path) -> None:
    message = refusal(write_run(tmp_path, changed(old, new)), tmp_path)
    assert expected in message
    assert "kernel-1.traceg" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "names no kernel file"),
        ("MemcpyHtoD,0x1000\n", "expected MemcpyHtoD,0xADDRESS,BYTES"),
        ("MemcpyHtoD,0x1000,99999999999999999999999\nkernel-1.traceg", "expected MemcpyHtoD,0xADDRESS,BYTES"),
        ("MemcpyHtoD,0x1000,9999999999999999999\nkernel-1.traceg", "end beyond"),
        ("MemcpyHtoD,zzz,4\nkernel-1.traceg", "found 'zzz'"),
        ("cudaMalloc,0x1000,64\ncudaMalloc,0x1020,64\nkernel-1.traceg", "allocated already"),
        ("kernel-9.traceg\n", "line 1: the kernel file kernel-9.traceg is missing"),
        ("MemcpyHtoD,0x7f0000000000,256,short.bin\nkernel-1.traceg", "expected the 256 of the copy in line 1"),
        ("kernel-1.traceg\x00\n", "not text"),
    ],
)
def test_bad_lists(text: str, expected: str, tmp_path: Path) -> None:
    write_run(tmp_path, changed("(1,1,1)", "(1,1,1)"))
    (tmp_path / "short.bin").write_bytes(b"abc")
    (tmp_path / "kernelslist.g").write_text(text)
    assert expected in refusal(tmp_path / "kernelslist.g", tmp_path)


def test_files_that_are_not_kernel_traces(tmp_path: Path) -> None:
    sample = (SAMPLES / "fork" / "kernel-2.traceg").read_bytes()
    packed = lzma.compress(sample)
    for kernel, name in [
        (b"", "kernel-1.traceg"),
        (b"\x7fELF" + bytes(range(256)) * 400, "kernel-1.traceg"),
        (b"#\n", "kernel-1.traceg"),
        (b"no header" * 10, "kernel-1.traceg"),
        (packed[:-20], "kernel-1.traceg.xz"),
        (packed[:40] + b"junk" + packed[44:], "kernel-1.traceg.xz"),
        (sample, "kernel-1.traceg.xz"),
        (packed, "kernel-1.traceg"),
        (sample, "kernel-1.trace"),
    ]:
        message = refusal(write_run(tmp_path, kernel, name), tmp_path)
        assert name in message or "none of its kernels" in message
        (tmp_path / name).unlink()


def test_raw_traces_with_wrong_block_and_warp_numbers(tmp_path: Path) -> None:
    text = (SAMPLES / "raw" / "kernel-1.trace").read_text()
    for old, new in [
        ("1 0 0 1 0000", "2 0 0 1 0000"),
        ("1 0 0 1 0000", "1 0 0 2 0000"),
        ("1 0 0 1 0000", "1 0"),
        ("1 0 0 1 0000 ffffffff", "1 0 0 1 0000 zzz"),
    ]:
        write_run(tmp_path, text.replace(old, new, 1).encode(), "kernel-1.trace")
        assert "kernel-1.trace" in refusal(tmp_path / "kernelslist.g", tmp_path)


@pytest.mark.parametrize("text", ["file", "file@", "@3", "nothing@3", "file@-1", "file@x"])
def test_bad_snapshots(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(BuddysimError):
        parse_snapshot(str(tmp_path / text) if not text.startswith("@") else text)


def test_a_snapshot_after_the_last_kernel(tmp_path: Path) -> None:
    (tmp_path / "0x7f0000000000.bin").write_bytes(bytes(128))
    kernelslist = write_run(tmp_path, changed("(1,1,1)", "(1,1,1)"))
    options = AccelsimImportOptions(snapshots=parse_snapshot(f"{tmp_path / '0x7f0000000000.bin'}@2"))
    assert "the list has 1" in refusal(kernelslist, tmp_path, options)


def test_the_command_ends_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\n")
    command = ["import", "accelsim", str(tmp_path / "kernelslist.g"), "-o", str(tmp_path / "out.bin")]
    assert cli.main(command) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert output.err.startswith("buddysim: error: ")
    assert "kernel-1.traceg is missing" in output.err
    assert cli.main(["import", "accelsim", str(tmp_path / "nothing"), "-o", str(tmp_path / "out.bin")]) == 2
    assert cli.main(["import", "accelsim", str(tmp_path), "-o", str(tmp_path / "out.bin")]) == 2
    assert not (tmp_path / "out.bin").exists()
    assert cli.main([*command, "--contents-every", "-1"]) == 2


def test_the_command_converts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernelslist = SAMPLES / "v6" / "kernelslist.g"
    assert cli.main(["import", "accelsim", str(kernelslist), "-o", str(tmp_path / "out.bin")]) == 0
    assert "10 warp instructions" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["verify", str(tmp_path / "out.bin")]) == 0


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return the data with a few random errors."""
    text = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not text:
            break
        at = rng.randrange(len(text))
        match rng.randrange(8):
            case 0:
                text[at] = rng.randrange(256)
            case 1:
                del text[at : at + rng.randint(1, 40)]
            case 2:
                text[at:at] = rng.choice(
                    [b" ", b"\n", b"0", b"-", b"9" * 25, b"0x", b"R", b"#", b"\0", b"ffffffffffff"]
                )
            case 3:
                del text[at:]
            case 4:
                lines = bytes(text).split(b"\n")
                lines.insert(rng.randrange(len(lines)), rng.choice(lines))
                text = bytearray(b"\n".join(lines))
            case 5:
                lines = bytes(text).split(b"\n")
                del lines[rng.randrange(len(lines))]
                text = bytearray(b"\n".join(lines))
            case 6:
                tokens = bytes(text).split(b" ")
                tokens[rng.randrange(len(tokens))] = rng.choice(
                    [b"-1", b"4294967296", b"0xffffffffffffffff", b"", b"Val"]
                )
                text = bytearray(b" ".join(tokens))
            case _:
                text[at : at + 1] = bytes([text[at] ^ 1 << rng.randrange(8)])
    return bytes(text)


@pytest.mark.parametrize("cases", [60, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sample", [*GROUPED, "raw", "raw_cores", "xz"])
def test_mutated_kernels_never_crash(sample: str, cases: int, tmp_path: Path) -> None:
    rng = random.Random(sample)
    folder = SAMPLES / ("fork" if sample == "xz" else sample)
    name = "kernel-1-ctx_0x55.traceg" if sample == "v6" else "kernel-1.trace" if "raw" in sample else "kernel-1.traceg"
    original = (folder / name).read_bytes()
    if sample == "xz":
        original, name = lzma.compress(original), name + ".xz"
    accepted = 0
    for _ in range(cases):
        kernelslist = write_run(tmp_path, mutated(original, rng), name)
        try:
            import_accelsim(kernelslist, tmp_path / "out.bin", AccelsimImportOptions(include_local=rng.random() < 0.5))
        except BuddysimError as error:
            assert "\n" not in str(error)
            assert not (tmp_path / "out.bin").exists()
            continue
        accepted += 1
        with open_trace(tmp_path / "out.bin") as trace:
            verify_trace(trace)
        (tmp_path / "out.bin").unlink()
    assert accepted < cases


def test_mutated_lists_never_crash(tmp_path: Path) -> None:
    rng = random.Random(5)
    sample = SAMPLES / "v1"
    (tmp_path / "kernel-1.traceg").write_bytes((sample / "kernel-1.traceg").read_bytes())
    original = (sample / "kernelslist.g").read_bytes()
    for _ in range(200):
        (tmp_path / "kernelslist.g").write_bytes(mutated(original, rng))
        with contextlib.suppress(BuddysimError):
            import_accelsim(tmp_path / "kernelslist.g", tmp_path / "out.bin", AccelsimImportOptions(skip_missing=True))
            with open_trace(tmp_path / "out.bin") as trace:
                verify_trace(trace)
