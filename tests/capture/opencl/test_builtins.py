"""Every built-in math function of the compiler's header runs in a capture, with PoCL's results, bit by bit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from buddysim.capture.opencl.toolchain import find_toolchain
from buddysim.trace import open_trace
from tests.capture.opencl.running import captured, needs_opencl, plain

ITEMS = 64
PER_KERNEL = 40
FLOATS = ("float", "float2", "float3", "float4", "float8", "float16", "double", "double2", "double4")


def declarations() -> list[tuple[str, str, tuple[str, ...]]]:
    """Return (result, name, parameters) of every math function of OpenCL C 1.2 in ``opencl-c.h``."""
    clang = find_toolchain().clang
    folder = subprocess.run([clang, "-print-resource-dir"], capture_output=True, text=True, check=True).stdout.strip()
    text = (Path(folder) / "include" / "opencl-c.h").read_text()
    begin = re.search(r"^// OpenCL v1\.1 s6\.11\.2", text, re.MULTILINE)
    end = re.search(r"^// OpenCL v1\.1 s6\.11\.3", text, re.MULTILINE)
    assert begin is not None
    assert end is not None
    matches = re.findall(r"^(\w+) __ovld (?:__cnfn )?(\w+)\(([^)]*)\);", text[begin.end() : end.start()], re.MULTILINE)
    result = []
    for kind, name, parameters in dict.fromkeys(matches):
        types = tuple(
            re.sub(r"\s*\b\w+$", "", one.strip()) if " " in one.strip() else one.strip()
            for one in parameters.split(",")
        )
        types = tuple(one.replace(" *", "*") for one in types)
        if any("generic" in one or "half" in one for one in (kind, *types)) or "half" in kind:
            continue
        result.append((kind, name, types))
    return result


def width(kind: str) -> int:
    return int(re.sub(r"\D", "", kind) or 1)


def base(kind: str) -> str:
    return kind.rstrip("0123456789")


def call(number: int, kind: str, name: str, types: tuple[str, ...]) -> str:
    """Return a block that calls the function once and adds the bits of its results to ``r``."""
    lines, arguments = [], []
    for position, one in enumerate(types):
        value = f"v{position}"
        pointed = one.endswith("*")
        plain_type = one.removesuffix("*").split()[-1]
        source = f"x[(i * 7 + {number} + {position * 13}) & 255]"
        if base(plain_type) in ("int", "uint", "long", "ulong"):
            source = f"(({base(plain_type)})({source} * 3.0f) & 31)"
        lines.append(f"{plain_type} {value} = ({plain_type})({source});")
        if pointed and "__global" in one:
            lines.append(f"__global {plain_type} *p{position} = (__global {plain_type} *)(scratch + i * 32);")
            arguments.append(f"p{position}")
        elif pointed and "__local" in one:
            lines.append(f"__local {plain_type} *p{position} = (__local {plain_type} *)(shared + (i & 63));")
            arguments.append(f"p{position}")
        else:
            arguments.append(f"&{value}" if pointed else value)
    lines.append(f"{kind} y = {name}({', '.join(arguments)});")
    results = [("y", kind)]
    for one, argument in zip(types, arguments, strict=True):
        if one.endswith("*"):
            results.append(
                (
                    argument.removeprefix("&") if argument[0] == "&" else f"(*{argument})",
                    one.removesuffix("*").split()[-1],
                )
            )
    for variable, result in results:
        for element in range(width(result)):
            part = f"{variable}.s{element:x}" if width(result) > 1 else variable
            bits = {"float": f"as_uint({part})", "double": f"(uint)(as_ulong({part}) ^ as_ulong({part}) >> 32)"}
            lines.append(f"r = r * 31u + {bits.get(base(result), f'(uint)({part})')};")
    return "{ " + " ".join(lines) + f" out[{number} * {ITEMS} + i] = r; }}"


def job(signatures: list[tuple[str, str, tuple[str, ...]]]) -> dict[str, Any]:
    kernels, launches = [], []
    for first in range(0, len(signatures), PER_KERNEL):
        some = signatures[first : first + PER_KERNEL]
        body = "\n".join(call(first + k, *signature) for k, signature in enumerate(some))
        name = f"builtins{first // PER_KERNEL}"
        kernels.append(
            f"__kernel void {name}(__global const float *x, __global uint *out, __global ulong *scratch)\n"
            f"{{ __local double16 shared[{ITEMS}]; int i = get_global_id(0); uint r = 0;\n{body} }}\n"
        )
        arguments = [{"buffer": 0}, {"buffer": 1}, {"buffer": 2}]
        launches.append({"kernel": name, "global": [ITEMS], "local": [32], "arguments": arguments})
    buffers = [
        {"bytes": 1024, "fill": "floats", "seed": 3},
        {"bytes": 4 * ITEMS * len(signatures)},
        {"bytes": 8 * 32 * ITEMS},
    ]
    return {
        "source": "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + "".join(kernels),
        "buffers": buffers,
        "launches": launches,
    }


def test_header_declares_functions_of_opencl_c_1_2() -> None:
    needs_opencl()
    names = {name for _, name, _ in declarations()}
    assert {"acos", "fract", "lgamma_r", "remquo", "tgamma", "native_sin", "sincos", "nan", "ilogb"} <= names
    assert len(names) > 90


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float", "float4", "double", "others"])
def test_results_are_pocls(kind: str, tmp_path: Path) -> None:
    needs_opencl()
    own = [kind] if kind != "others" else [one for one in FLOATS if one not in ("float", "float4", "double")]

    def is_supported(types: tuple[str, ...]) -> bool:
        floats = [one.removesuffix("*").split()[-1] for one in types]
        return any(one in own for one in floats) or (kind == "float" and floats == ["uint"])

    signatures = [one for one in declarations() if is_supported((one[0], *one[2]))]
    assert len(signatures) > 80
    program = job(signatures)
    expected = plain(program, tmp_path)
    _, done = captured(program, tmp_path, "--snapshots", "0")
    assert done.returncode == 0, done.stderr
    assert "not traced" not in done.stderr
    assert done.stdout == expected
    with open_trace(tmp_path / "out.bin") as trace:
        assert len(trace.kernels) == -(-len(signatures) // PER_KERNEL)
