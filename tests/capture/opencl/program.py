"""An OpenCL program: runs the launches that a JSON file describes, and prints a digest of each buffer.

{"source": "__kernel ...", "options": "", "buffers": [{"bytes": 4096, "fill": "random32", "seed": 1}],
 "launches": [{"kernel": "k", "global": [64], "local": [32], "offset": [0],
               "arguments": [{"buffer": 0}, {"local": 128}, {"i32": 7}, {"f32": 1.5}]},
              {"write": 0, "fill": "count"}, {"release": 0}, {"new": {"bytes": 4096}},
              {"hold": true} (launches wait for an event, until {"hold": false})],
 "die": "signal" (before the end: "exit"), "call": an OpenCL function to call in between}
"""

from __future__ import annotations

import array
import ctypes
import hashlib
import json
import os
import random
import signal
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_ulong, c_void_p
from pathlib import Path
from typing import Any

cl = ctypes.CDLL("libOpenCL.so.1")
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateSubBuffer", "clCreateKernel"):
    getattr(cl, name).restype = c_void_p
cl.clCreateProgramWithSource.restype = cl.clCreateUserEvent.restype = cl.clCreatePipe.restype = c_void_p

ALL_DEVICES, READ_WRITE, COPY_HOST = 0xFFFFFFFF, 1, 32


def check(error: int, what: str) -> None:
    if error:
        sys.exit(f"{what}: OpenCL error {error}")


def made(function: Any, *arguments: Any) -> c_void_p:
    error = c_int()
    result = function(*arguments, byref(error))
    check(error.value, function.__name__)
    return c_void_p(result)


def contents(buffer: dict[str, Any]) -> bytes:
    """Return the bytes of a buffer; without NumPy, whose import takes longer than most programs."""
    n = buffer["bytes"]
    generator = random.Random(buffer.get("seed", 0))
    match buffer.get("fill", "zero"):
        case "random32":
            return generator.randbytes(n)
        case "floats":
            return array.array("f", (generator.uniform(-4, 4) for _ in range(-(-n // 4)))).tobytes()[:n]
        case "count":
            return array.array("I", range(-(-n // 4))).tobytes()[:n]
        case _:
            return bytes(n)


class Program:
    def __init__(self, source: str, options: str) -> None:
        self.event: c_void_p | None = None
        platform, device = c_void_p(), c_void_p()
        check(cl.clGetPlatformIDs(1, byref(platform), None), "clGetPlatformIDs")
        check(cl.clGetDeviceIDs(platform, c_ulong(ALL_DEVICES), 1, byref(device), None), "clGetDeviceIDs")
        self.context = made(cl.clCreateContext, None, 1, byref(device), None, None)
        self.queue = made(cl.clCreateCommandQueue, self.context, device, c_ulong(0))
        text = c_char_p(source.encode())
        self.program = made(cl.clCreateProgramWithSource, self.context, 1, byref(text), None)
        error = cl.clBuildProgram(self.program, 1, byref(device), options.encode(), None, None)
        if error:
            log = ctypes.create_string_buffer(1 << 16)
            cl.clGetProgramBuildInfo(self.program, device, 0x1183, c_size_t(1 << 16), log, None)
            sys.exit(f"clBuildProgram: OpenCL error {error}\n{log.value.decode()}")
        self.buffers: list[tuple[c_void_p, int]] = []

    def buffer(self, description: dict[str, Any]) -> None:
        if "sub_buffer_of" in description:
            region = (c_size_t * 2)(description["origin"], description["bytes"])
            parent = self.buffers[description["sub_buffer_of"]][0]
            memory = made(cl.clCreateSubBuffer, parent, c_ulong(READ_WRITE), 0x1220, region)
            self.buffers.append((memory, description["bytes"]))
            return
        if description.get("fill") == "none":
            memory = made(cl.clCreateBuffer, self.context, c_ulong(READ_WRITE), c_size_t(description["bytes"]), None)
            self.buffers.append((memory, 0))
            return
        data = contents(description)
        flags = c_ulong(READ_WRITE | COPY_HOST)
        memory = made(cl.clCreateBuffer, self.context, flags, c_size_t(len(data)), c_char_p(data))
        self.buffers.append((memory, len(data)))

    def launch(self, launch: dict[str, Any]) -> None:
        kernel = made(cl.clCreateKernel, self.program, launch["kernel"].encode())
        for index, argument in enumerate(launch["arguments"]):
            ((kind, value),) = argument.items()
            if kind == "buffer":
                error = cl.clSetKernelArg(kernel, index, c_size_t(8), byref(self.buffers[value][0]))
            elif kind == "local":
                error = cl.clSetKernelArg(kernel, index, c_size_t(value), None)
            else:
                holder = ctypes.c_float(value) if kind == "f32" else c_uint(value & 0xFFFFFFFF)
                error = cl.clSetKernelArg(kernel, index, c_size_t(4), byref(holder))
            check(error, f"clSetKernelArg {index}")
        sizes = {key: launch.get(key) for key in ("offset", "global", "local")}
        arrays = {key: (c_size_t * len(value))(*value) if value else None for key, value in sizes.items()}
        dimensions = len(launch["global"])
        waits = (1, byref(self.event)) if self.event else (0, None)
        error = cl.clEnqueueNDRangeKernel(
            self.queue, kernel, dimensions, arrays["offset"], arrays["global"], arrays["local"], *waits, None
        )
        check(error, "clEnqueueNDRangeKernel")
        check(cl.clReleaseKernel(kernel), "clReleaseKernel")

    def step(self, step: dict[str, Any]) -> None:
        """Run a launch, or what the program does with a buffer between launches."""
        if "write" in step:
            memory, n = self.buffers[step["write"]]
            data = contents(step | {"bytes": n})
            error = cl.clEnqueueWriteBuffer(
                self.queue, memory, 1, c_size_t(0), c_size_t(n), c_char_p(data), 0, None, None
            )
            check(error, "clEnqueueWriteBuffer")
        elif "release" in step:
            memory, _ = self.buffers[step["release"]]
            self.buffers[step["release"]] = (memory, -1)
            check(cl.clReleaseMemObject(memory), "clReleaseMemObject")
        elif "new" in step:
            self.buffer(step["new"])
        elif "hold" in step:
            if step["hold"]:
                self.event = made(cl.clCreateUserEvent, self.context)
            else:
                check(cl.clSetUserEventStatus(self.event, 0), "clSetUserEventStatus")
                self.event = None
        else:
            self.launch(step)

    def digest(self, memory: c_void_p, n: int) -> str:
        if not n:
            return ""
        data = ctypes.create_string_buffer(n)
        error = cl.clEnqueueReadBuffer(self.queue, memory, 1, c_size_t(0), c_size_t(n), data, 0, None, None)
        check(error, "clEnqueueReadBuffer")
        return hashlib.sha256(data).hexdigest()[:16]


def fork_and_use(program: Program) -> None:
    """Fork a child that inherits OpenCL, makes a buffer, and ends with all exit handlers."""
    child = os.fork()
    if not child:
        program.buffer({"bytes": 4096, "fill": "zero"})
        ctypes.CDLL(None).exit(0)
    check(os.waitpid(child, 0)[1], "the child")


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    program = Program(job["source"], job.get("options", ""))
    for description in job["buffers"]:
        program.buffer(description)
    for step in job["launches"]:
        program.step(step)
    if job.get("call") == "pipe":
        cl.clCreatePipe(program.context, c_ulong(1), c_uint(4), c_uint(16), None, None)  # whether or not there are any
    if job.get("call") == "fork":
        fork_and_use(program)
    check(cl.clFinish(program.queue), "clFinish")
    if job.get("die") == "signal":
        os.kill(os.getpid(), signal.SIGKILL)
    if job.get("die") == "exit":
        os._exit(9)
    held = [(memory, n) for memory, n in program.buffers if n >= 0]
    print(json.dumps([program.digest(memory, n) for memory, n in held]))
    for memory, _ in held:
        check(cl.clReleaseMemObject(memory), "clReleaseMemObject")
    sys.exit(job.get("exit_code", 0))


if __name__ == "__main__":
    main()
