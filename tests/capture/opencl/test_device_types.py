"""``capture opencl`` shows PoCL's device types; a program that requests a GPU gets the CPU, and a warning."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.capture.opencl.running import needs_opencl
from tests.in_process import run_in_process

SOURCE = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>
static cl_device_type type_of(const char *name) {
    if (!strcmp(name, "cpu")) return CL_DEVICE_TYPE_CPU;
    if (!strcmp(name, "gpu")) return CL_DEVICE_TYPE_GPU;
    if (!strcmp(name, "accelerator")) return CL_DEVICE_TYPE_ACCELERATOR;
    if (!strcmp(name, "custom")) return CL_DEVICE_TYPE_CUSTOM;
    return CL_DEVICE_TYPE_ALL;
}
int main(int n, char **names) {
    cl_platform_id platform;
    if (clGetPlatformIDs(1, &platform, NULL)) return 3;
    for (int i = 1; i < n; i++) {
        cl_uint count = 0;
        cl_int error = clGetDeviceIDs(platform, type_of(names[i]), 0, NULL, &count);
        cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
        cl_int context_error = 0;
        cl_context context = clCreateContextFromType(properties, type_of(names[i]), NULL, NULL, &context_error);
        printf("%s: %u devices, error %d; context %s, error %d\n", names[i], error ? 0 : count, error,
               context ? "made" : "none", context_error);
        if (context) clReleaseContext(context);
    }
    return 0;
}
"""
WARNING = "the program requests a GPU: PoCL's CPU takes its role"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the program above."""
    needs_opencl()
    folder = tmp_path_factory.mktemp("devices")
    (folder / "devices.c").write_text(SOURCE)
    command = ["gcc", str(folder / "devices.c"), "-o", str(folder / "devices"), "-lOpenCL"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no OpenCL headers: {made.stderr.splitlines()[0]}")
    return folder / "devices"


def captured(program: Path, folder: Path, *types: str, options: tuple[str, ...] = ()) -> tuple[list[str], str]:
    """Return the captured program's output and standard error."""
    command = ("capture", "opencl", "-o", "out.bin", *options, "--", program, *types)
    done = run_in_process(*command, folder=folder, environment=os.environ)
    return done.stdout.splitlines(), done.stderr


def test_other_device_types_are_those_of_pocl(program: Path, tmp_path: Path) -> None:
    types = ("all", "cpu", "accelerator", "custom")
    plain = subprocess.run([str(program), *types], capture_output=True, text=True, check=True).stdout.splitlines()
    printed, errors = captured(program, tmp_path, *types)
    assert printed == plain
    assert WARNING not in errors


def test_requested_gpu_is_the_cpu_after_one_warning(program: Path, tmp_path: Path) -> None:
    printed, errors = captured(program, tmp_path, "gpu", "gpu", "accelerator")
    assert printed[:2] == ["gpu: 1 devices, error 0; context made, error 0"] * 2
    assert printed[2].startswith("accelerator: 0 devices")
    assert errors.count(WARNING) == 1


def test_report_as_gpu_gives_a_gpu_without_a_warning(program: Path, tmp_path: Path) -> None:
    printed, errors = captured(program, tmp_path, "gpu", options=("--report-as-gpu",))
    assert printed == ["gpu: 1 devices, error 0; context made, error 0"]
    assert WARNING not in errors
