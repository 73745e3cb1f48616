"""A plug-in that breaks a promise of its kind is refused by `check-plugin` in one line: two or more of each kind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from buddysim.base.kinds import HOMES
from buddysim.cli import main

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "plugins"

#: The example of each kind that is broken here.
EXAMPLE_OF = {
    "compressor": "base_delta.py",
    "importer": "addresses.py",
    "synthetic workload": "transpose.py",
    "workload": "heat.py",
    "replay scheme": "first_touch.pyx",
    "warp scheduler": "oldest.pyx",
    "L1 banking": "half_lines.pyx",
    "slice hash": "xor_all.pyx",
    "DRAM model": "unloaded.pyx",
    "DRAM refresh": "half_banks.pyx",
    "link protocol": "pcie.pyx",
    "write drain": "when_full.pyx",
    "metadata prefetcher": "next_line.pyx",
    "training scheme": "vdnn_large.py",
    "recipe": "megatron_fp16.py",
    "optimizer": "lion.py",
    "network": "small_resnet.py",
    "layer kind": "leaky_relu.py",
    "architecture": "granite.py",
    "analysis": "word_values.py",
    "figure": "kernel_times.py",
    "command": "allocations.py",
}


#: The head of a function before which a broken example has a variable that outlives a run.
WRITE_QUEUED = "cdef void write_queued(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil:\n"


class Broken(NamedTuple):
    """An example, what of it is replaced by what, words of the promise that is then broken and of the breach."""

    example: str
    old: str
    new: str
    promise: str
    breach: str


BROKEN = {
    "compressor loses data": Broken(
        "base_delta.py",
        "    return data\n\n",
        "    return bytes(nbytes)\n\n",
        "gives back what compress got",
        "byte .* is 0x.*, decompressed 0x00",
    ),
    "compressor of wrong sizes": Broken(
        "base_delta.py",
        "return (8 * (1 + 4 + OTHERS * _widths(_words(data)))).astype(np.uint32)",
        "return np.full(len(data) // ENTRY, 5000, np.uint32)",
        "as many bits as the sizes say",
        "sizes of 2575000 bits in all, a payload of",
    ),
}

BROKEN |= {
    "importer that takes anything": Broken(
        "addresses.py",
        "raise BuddysimError(f\"{args.file}: line {number}: expected 'load 0x...' or 'store 0x...'\") from None",
        "kinds.append(OP_LOAD), addresses.append(128 * number)",
        "another format is refused",
        "foreign.*is imported: expected an error|imported.bin is left",
    ),
    "importer that explains nothing": Broken(
        "addresses.py", 'help="the text file"', "", "explains each argument", "argument file: expected a help text"
    ),
    "synthetic workload by chance": Broken(
        "transpose.py",
        "1 << row % WORDS_PER_LINE // WORDS_PER_SECTOR",
        "1 << row % np.random.default_rng().integers(1, 4)",
        "make the same file",
        "different bytes",
    ),
    "synthetic workload beyond its memory": Broken(
        "transpose.py", "4 * self.n * self.n)", "4 * self.n)", "lies within an allocation", "Error"
    ),
    "workload of one input": Broken(
        "heat.py", ', "replay": Problem(224, 20, 3)', "", "known scales and inputs", "expected profile and replay"
    ),
    "workload of impossible snapshots": Broken(
        "heat.py",
        "    def set_up(self",
        "    @property\n    def snapshot_points(self):\n        return (5, 2)\n\n    def set_up(self",
        "is possible",
        "expected increasing numbers",
    ),
    "analysis that reads more than it says": Broken(
        "word_values.py", "MOST = 8", "MOST = 8\nREADS = ('word',)", "reads options that there are", "READS has 'word'"
    ),
    "analysis of fractions above 1": Broken(
        "word_values.py", "count / total)", "count)", "fractions from 0 to 1", "words_fraction = .*: expected 0 to 1"
    ),
    "figure of nothing": Broken(
        "kernel_times.py",
        "    figure, axes = style.make_figure(TITLE)\n",
        "    return style.make_figure(TITLE)[0]\n",
        "with something in it",
        "has nothing in it",
    ),
    "figure without a line": Broken(
        "kernel_times.py", 'FILE = ("TRACE.bin"', 'FILE = ("trace.bin"', "its file and options", "expected capitals"
    ),
    "command of two words": Broken(
        "allocations.py", 'NAME = "allocations"', 'NAME = "all ocations"', "a word", "NAME: 'all ocations': expected"
    ),
    "command that explains badly": Broken(
        "allocations.py", "lines to print (default: 10)", "100 % (default: 10)", "its help screen", "ValueError"
    ),
}

BROKEN |= {
    "training scheme without a plan": Broken(
        "vdnn_large.py",
        "    return replace(everything, scheme=name, stash=large, notes=(note,))",
        "    return None",
        "plans each layer",
        "training scheme vdnn-large: plan returned None, expected a Plan",
    ),
    "training scheme faster than its computation": Broken(
        "vdnn_large.py",
        "stash=large, notes=(note,)",
        "stash=large, time_factor=0.5",
        "from the oracle's time",
        "expected from .* \\(the oracle's\\) to",
    ),
    "network of another name": Broken(
        "small_resnet.py",
        'NetworkBuilder("small-resnet"',
        'NetworkBuilder("resnet"',
        "has its name",
        "'resnet': expected small-resnet",
    ),
    "network by chance": Broken(
        "small_resnet.py",
        "features=10",
        "features=__import__('random').randrange(1, 10**6)",
        "made alike are equal",
        "built again output_shape of layer",
    ),
    "layer kind that overwrites what it reads": Broken(
        "leaky_relu.py", '{"y", "dy"}', '{"x", "dy"}', "agrees with itself", "its backward step reads x"
    ),
    "layer kind of a negative shape": Broken(
        "leaky_relu.py",
        "one_value_each(2)",
        "one_value_each(-2)",
        "whole amounts",
        "flops = -.*: expected a whole number",
    ),
    "architecture with an unused weight": Broken(
        "granite.py",
        "        layer.factor =",
        "        layer.unused = Embedding(4, 4)\n        layer.factor =",
        "every weight",
        "unused.* gets no gradient",
    ),
    "architecture that holds memory": Broken(
        "granite.py",
        "        return logits / self.logits_scaling",
        "        ARCHITECTURES.append(logits)\n        return logits / self.logits_scaling",
        "leaves the memory",
        "B more live",
    ),
    "recipe of no precision": Broken(
        "megatron_fp16.py",
        'float16, "fp16"',
        'float16, "fp17"',
        "as wide as its products",
        "precision 'fp17': expected",
    ),
    "recipe of too wide a precision": Broken(
        "megatron_fp16.py", 'float16, "fp16"', 'float16, "fp32"', "as wide as its products", "operands of 2 B"
    ),
    "optimizer whose state has one name": Broken(
        "lion.py",
        'return (StateTensor("exp_avg", shape, dtype),)',
        'return (StateTensor("exp_avg", shape, dtype),) * 2',
        "named state",
        "two tensors of state have one name",
    ),
    "optimizer that holds memory": Broken(
        "lion.py", "            del update", "            self.left = update", "frees what it allocates", "B more live"
    ),
}

#: Likewise, of files that are compiled.
COMPILED = {
    "scheme that counts no fill": Broken(
        "first_touch.pyx", "    allocation.fills += 1\n", "", "counts each fill", "it counts 0 fills of"
    ),
    "scheme that fills at once": Broken(
        "first_touch.pyx",
        "else raw_fill(m, allocation, at, sectors, t)",
        "else t",
        "a fill takes time",
        "fills take no time",
    ),
    "scheme by chance": Broken(
        "first_touch.pyx",
        "pages.capacity = self.capacity",
        "pages.capacity = __import__('time').time_ns() % self.capacity",
        "two runs alike",
        "cycles: .* and",
    ),
    "busy warp": Broken(
        "oldest.pyx",
        "    while not warp_can_issue(scheduler, warp, now):\n        warp += 1\n",
        "",
        "can issue",
        "can issue at",
    ),
    "scheduler that is changed": Broken(
        "oldest.pyx",
        "    return warp",
        "    (<Scheduler*>scheduler).last_issuer = warp\n    return warp",
        "changes nothing",
        "it changed the scheduler",
    ),
    "early line": Broken(
        "half_lines.pyx", "return l1_enter(l1, m, sm_l1, now)", "return now - 5", "before its instruction", "enters at"
    ),
    "line of an earlier instruction's cycle": Broken(
        "half_lines.pyx", "if number and not needed", "if not needed", "before its instruction", "enters at"
    ),
    "slice beyond": Broken(
        "xor_all.pyx", "slices[i], rest = 0, units[i]", "slices[i], rest = 1 << bits, units[i]", "below", "slice"
    ),
    "slice by neighbours": Broken(
        "xor_all.pyx", "slices[i], rest = 0, units[i]", "slices[i], rest = n == 1, units[i]", "one slice", "alone"
    ),
    "read before it could arrive": Broken(
        "unloaded.pyx",
        "    return t + idle_ps(dram, bursts)",
        "    return t + idle_ps(dram, bursts) / 2",
        "before it could on idle memory",
        "on idle memory at",
    ),
    "dry run of another time": Broken(
        "unloaded.pyx", "= read, read, write", "= read, write, write", "as its dry run says", "its dry run at"
    ),
    "refresh to come": Broken(
        "half_banks.pyx", "t + before) - before", "t + before)", "is not to come", "its last refresh began at"
    ),
    "refresh of long ago": Broken(
        "half_banks.pyx",
        "t + before) - before",
        "t + before) - before - 2 * dram.timing.refi",
        "at most two intervals ago",
        "its last refresh began at",
    ),
    "link that loses bytes": Broken(
        "pcie.pyx",
        "return payload + packet_count",
        "return payload / 2 + packet_count",
        "at least the payload",
        "expected",
    ),
    "link that requests give bytes": Broken(
        "pcie.pyx",
        "MAX_READ) * REQUEST_BYTES",
        "MAX_READ) * -REQUEST_BYTES",
        "at least the payload",
        "requests of 32 B: -24 B",
    ),
    "queue over its limit": Broken(
        "when_full.pyx",
        "queued_bursts >= (<int64_t*>dram.drain_state)[0]",
        "queued_bursts >= 10 * (<int64_t*>dram.drain_state)[0]",
        "never holds more than its entries",
        "bursts are queued, the queue holds",
    ),
    "drain that goes on from an earlier run": Broken(
        "when_full.pyx",
        f"{WRITE_QUEUED}    if channel",
        f"cdef int queued = 0\n\n{WRITE_QUEUED}    global queued\n    queued += 1\n    if queued % 101 == 0 or channel",
        "two runs alike",
        " and ",
    ),
    "metadata before their miss": Broken(
        "next_line.pyx", "line + 1, t)", "line + 1, t - 1000000)", "after the miss", "from idle memory at"
    ),
    "prefetcher that counts hits": Broken(
        "next_line.pyx",
        "line + 1, t)",
        "line + 1, t)\n    cache.count.hits += 1",
        "counts no lookup",
        "lookup 1, .* 2 are counted",
    ),
}


def test_every_kind_has_two_broken_examples() -> None:
    examples = [broken.example for broken in (*BROKEN.values(), *COMPILED.values())]
    assert [kind for kind in HOMES if examples.count(EXAMPLE_OF.get(kind, "")) < 2] == []


def changed(broken: Broken, folder: Path) -> Path:
    text = (EXAMPLES / broken.example).read_text(encoding="utf-8")
    assert broken.old in text
    file = folder / broken.example
    file.write_text(text.replace(broken.old, broken.new))
    return file


def check(broken: Broken, code: int, out: str, err: str, file: Path) -> None:
    assert code == 2, out + err
    (kind,) = [kind for kind, example in EXAMPLE_OF.items() if example == broken.example]
    assert out.startswith(f"{kind} ")
    ((line, texts),) = [
        (line, texts)
        for line, texts in re.findall(r"^  broken  (.*)\n((?: {10}.*\n)*)", out, re.M)
        if broken.promise in " ".join(f"{line} {texts}".split())
    ]
    assert re.search(broken.breach, " ".join(f"{line} {texts}".split()))
    assert err.splitlines()[-1].startswith(f"buddysim: error: {file}: broken contracts: ")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = changed(BROKEN[name], tmp_path)
    code = main(["check-plugin", str(file)])
    check(BROKEN[name], code, *capsys.readouterr(), file)


def run(file: Path, folder: Path) -> tuple[int, str, str]:
    """The exit code of `check-plugin`, and what it prints, in a process of its own."""
    command = [sys.executable, "-m", "buddysim", "check-plugin", str(file)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_a_broken_plugin_in_cython_is_refused(name: str, tmp_path: Path) -> None:
    file = changed(COMPILED[name], tmp_path)
    check(COMPILED[name], *run(file, tmp_path), file)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_keeps_its_contracts(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-plugin", str(example)]) == 0, capsys.readouterr()
    assert re.search(r"^  holds ", capsys.readouterr().out, re.M)


def test_a_workload_is_not_run_without_opencl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert main(["check-plugin", str(EXAMPLES / "heat.py")]) == 0
    shown = capsys.readouterr()
    assert len(re.findall(r"^  holds ", shown.out, re.M)) == 2
    (line,) = shown.err.splitlines()
    assert re.search(
        r"as stated: not tried: .* PyOpenCL, which isn't installed: pip install 'buddysim\[opencl\]'$", line
    )


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.pyx")), ids=lambda path: path.stem)
def test_an_example_in_cython_keeps_its_contracts(example: Path, tmp_path: Path) -> None:
    code, out, err = run(example, tmp_path)
    assert (code, "  broken  " in out) == (0, False), out + err
