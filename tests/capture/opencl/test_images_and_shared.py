"""``capture opencl`` of kernels that use images, samplers and shared virtual memory."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np

from buddysim.trace import OP_LOAD, OP_STORE, Memcpy, Trace, open_trace, verify_trace
from tests.capture.opencl.running import needs_opencl
from tests.in_process import run_in_process

HEAD = r"""
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static cl_int e;
#define CHECK(what) do { what; if (e) { fprintf(stderr, "%s: %d\n", #what, e); exit(3); } } while (0)
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel kernel(const char *name) { cl_kernel k; CHECK(k = clCreateKernel(program, name, &e)); return k; }
static void begin(const char *source) {
    cl_platform_id platform;
    cl_device_id device;
    CHECK(e = clGetPlatformIDs(1, &platform, NULL));
    CHECK(e = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    CHECK(context = clCreateContext(NULL, 1, &device, NULL, NULL, &e));
    CHECK(queue = clCreateCommandQueue(context, device, 0, &e));
    CHECK(program = clCreateProgramWithSource(context, 1, &source, NULL, &e));
    CHECK(e = clBuildProgram(program, 1, &device, "-cl-std=CL2.0", NULL, NULL));
}
static void launch(cl_kernel k, size_t x, size_t y) {
    size_t size[2] = {x, y}, group[2] = {x < 32 ? x : 32, 1};
    CHECK(e = clEnqueueNDRangeKernel(queue, k, 2, NULL, size, group, 0, NULL, NULL));
    CHECK(e = clFinish(queue));
}
"""

IMAGES = (
    HEAD
    + r"""
static const char *source =
    "__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
    "__kernel void blur(__read_only image2d_t in, __write_only image2d_t out, sampler_t given,\n"
    "                   __global float *sums) {\n"
    "  int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
    "  float4 left = read_imagef(in, nearest, at - (int2)(1, 0)), here = read_imagef(in, given, at + (int2)(1, 0));\n"
    "  write_imagef(out, at, 0.5f * (left + here));\n"
    "  sums[at.y * get_image_width(in) + at.x] = here.x + here.w;\n"
    "}\n"
    "__kernel void sum3(__read_only image3d_t in, __global uint *out) {\n"
    "  uint4 total = 0;\n"
    "  for (int z = 0; z < get_image_depth(in); z++)\n"
    "    total += read_imageui(in, (int4)(get_global_id(0), get_global_id(1), z, 0));\n"
    "  out[get_global_id(1) * 32 + get_global_id(0)] = total.x * 1000 + total.y;\n"
    "}\n"
    "__kernel void line(__read_only image1d_buffer_t in, __global float *out) {\n"
    "  out[get_global_id(0)] = read_imagef(in, (int)get_global_id(0)).x;\n"
    "}\n";
enum { W = 64, H = 16 };
int main(void) {
    static float pixels[H][W][4], back[H][W][4], sums[H][W], copy[H * W * 4];
    for (int i = 0; i < H * W * 4; i++) (&pixels[0][0][0])[i] = i % 251 * 0.25f;
    begin(source);
    cl_image_format rgba = {CL_RGBA, CL_FLOAT}, eight = {CL_RGBA, CL_UNSIGNED_INT8}, r = {CL_R, CL_FLOAT};
    cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = W, .image_height = H};
    cl_mem in, out, sum, solid, totals, row, numbers;
    CHECK(in = clCreateImage(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &rgba, &shape, pixels, &e));
    CHECK(out = clCreateImage2D(context, CL_MEM_WRITE_ONLY, &rgba, W, H, 0, NULL, &e));
    CHECK(sum = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof sums, NULL, &e));
    size_t zero[3] = {0, 0, 0}, all[3] = {W, H, 1}, part[3] = {8, 2, 1}, at[3] = {3, 5, 0};
    float black[4] = {0, 0, 0, 0};
    CHECK(e = clEnqueueFillImage(queue, out, black, zero, all, 0, NULL, NULL));
    CHECK(e = clEnqueueWriteImage(queue, in, CL_TRUE, at, part, 0, 0, pixels, 0, NULL, NULL));
    cl_sampler sampler;
    CHECK(sampler = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &e));
    cl_kernel blur = kernel("blur");
    CHECK(e = clSetKernelArg(blur, 0, sizeof in, &in));
    CHECK(e = clSetKernelArg(blur, 1, sizeof out, &out));
    CHECK(e = clSetKernelArg(blur, 2, sizeof sampler, &sampler));
    CHECK(e = clSetKernelArg(blur, 3, sizeof sum, &sum));
    launch(blur, W, H);
    CHECK(e = clEnqueueReadImage(queue, out, CL_TRUE, zero, all, 0, 0, back, 0, NULL, NULL));
    CHECK(e = clEnqueueReadBuffer(queue, sum, CL_TRUE, 0, sizeof sums, sums, 0, NULL, NULL));
    double total = 0;
    for (int i = 0; i < H * W * 4; i++) total += (i % 17) * (&back[0][0][0])[i];
    for (int i = 0; i < H * W; i++) total += (i % 13) * (&sums[0][0])[i];
    size_t row_pitch, cube[3] = {32, 4, 5};
    float *mapped;
    CHECK(mapped = clEnqueueMapImage(queue, out, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, zero, all, &row_pitch, NULL, 0,
                                     NULL, NULL, &e));
    total += mapped[9];
    mapped[0] = 123;
    CHECK(e = clEnqueueUnmapMemObject(queue, out, mapped, 0, NULL, NULL));
    unsigned char bytes[5][4][32][4];
    for (size_t i = 0; i < sizeof bytes; i++) (&bytes[0][0][0][0])[i] = (unsigned char)(i * 7);
    cl_image_desc deep = {.image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = 32, .image_height = 4, .image_depth = 5};
    CHECK(solid = clCreateImage(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &eight, &deep, bytes, &e));
    CHECK(totals = clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * 128, NULL, &e));
    cl_kernel sum3 = kernel("sum3");
    CHECK(e = clSetKernelArg(sum3, 0, sizeof solid, &solid));
    CHECK(e = clSetKernelArg(sum3, 1, sizeof totals, &totals));
    launch(sum3, 32, 4);
    unsigned found[128];
    CHECK(e = clEnqueueReadBuffer(queue, totals, CL_TRUE, 0, sizeof found, found, 0, NULL, NULL));
    for (int i = 0; i < 128; i++) total += found[i] % 1009;
    CHECK(numbers = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, 4 * 128, pixels, &e));
    cl_image_desc strip = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 128, .mem_object = numbers};
    CHECK(row = clCreateImage(context, CL_MEM_READ_ONLY, &r, &strip, NULL, &e));
    cl_kernel line = kernel("line");
    CHECK(e = clSetKernelArg(line, 0, sizeof row, &row));
    CHECK(e = clSetKernelArg(line, 1, sizeof sum, &sum));
    launch(line, 128, 1);
    CHECK(e = clEnqueueReadBuffer(queue, sum, CL_TRUE, 0, 4 * 128, copy, 0, NULL, NULL));
    for (int i = 0; i < 128; i++) total += copy[i] * i;
    printf("%.6f\n", total);
    clReleaseMemObject(row);
    clReleaseMemObject(numbers);
    return 0;
}
"""
)

SHARED = (
    HEAD
    + r"""
static const char *source =
    "struct node { __global struct node *next; float value; };\n"
    "__kernel void walk(__global struct node *first, __global float *out, int n) {\n"
    "  __global struct node *at = first;\n"
    "  for (int i = 0; i < (int)get_global_id(0) % n; i++) at = at->next;\n"
    "  out[get_global_id(0)] = 2 * at->value;\n"
    "}\n";
struct node { struct node *next; float value; };
int main(void) {
    begin(source);
    struct node *nodes = clSVMAlloc(context, CL_MEM_READ_WRITE, 64 * sizeof *nodes, 0);
    float *out = clSVMAlloc(context, CL_MEM_READ_WRITE, 128 * sizeof *out, 0), found[128], zero = 0;
    CHECK(e = clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, nodes, 64 * sizeof *nodes, 0, NULL, NULL));
    for (int i = 0; i < 64; i++) nodes[i] = (struct node){&nodes[(i + 5) % 64], i * 0.5f};
    CHECK(e = clEnqueueSVMUnmap(queue, nodes, 0, NULL, NULL));
    CHECK(e = clEnqueueSVMMemFill(queue, out, &zero, 4, 128 * sizeof *out, 0, NULL, NULL));
    cl_kernel walk = kernel("walk");
    int n = 7;
    CHECK(e = clSetKernelArgSVMPointer(walk, 0, nodes + 1));
    CHECK(e = clSetKernelArgSVMPointer(walk, 1, out));
    CHECK(e = clSetKernelArg(walk, 2, sizeof n, &n));
    launch(walk, 128, 1);
    CHECK(e = clEnqueueSVMMemcpy(queue, CL_TRUE, found, out, sizeof found, 0, NULL, NULL));
    double total = 0;
    for (int i = 0; i < 128; i++) total += found[i] * (i + 1);
    printf("%.6f\n", total);
    void *later[] = {nodes};
    CHECK(e = clEnqueueSVMFree(queue, 1, later, NULL, NULL, 0, NULL, NULL));
    CHECK(e = clFinish(queue));
    clSVMFree(context, out);
    return 0;
}
"""
)


def captured(source: str, folder: Path) -> tuple[Path, str]:
    """Capture a program whose output must stay the same; return the trace's path and the messages."""
    needs_opencl()
    program = folder / "program"
    program.with_suffix(".c").write_text(source)
    loader = ctypes.util.find_library("OpenCL")
    flags = ["-w", "-o", str(program), f"-l:{loader}"]
    made = subprocess.run(["gcc", str(program.with_suffix(".c")), *flags], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    plain = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr
    command = ("capture", "opencl", "-o", "out.bin", "--", program)
    done = run_in_process(*command, folder=folder, environment=os.environ)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    with open_trace(folder / "out.bin") as trace:
        verify_trace(trace)
    return folder / "out.bin", done.stderr


def touched(trace: Trace, kernel: int, kind: int, name: str) -> int:
    """Return the distinct lines of an allocation that a kernel's loads or stores access."""
    (base, size) = next((one.base, one.bytes) for one in trace.allocations if one.name == name)
    lines = set()
    for chunk in trace.kernels[kernel].chunks:
        records = trace.decode_chunk(chunk)
        for op in records.ops[records.ops["kind"] == kind]:
            lines |= {
                int(line >> 8) * 128 for line in records.lines[op["first_line"] : op["first_line"] + op["n_lines"]]
            }
    return sum(base <= line < base + size for line in lines)


def test_images_are_buffers(tmp_path: Path) -> None:
    output, messages = captured(IMAGES, tmp_path)
    assert "not traced" not in messages
    assert "not known to the capture" not in messages
    assert "outside of every buffer" not in messages
    with open_trace(output) as trace:
        sizes = {one.name: one.bytes for one in trace.allocations}
        image = 64 * 16 * 16
        expected = {"blur.in": image, "blur.out": image, "blur.sums": 4096, "sum3.in": 2560, "sum3.out": 512}
        assert sizes == expected | {"line.in": 512}
        assert [kernel.name for kernel in trace.kernels] == ["blur", "sum3", "line"]
        assert touched(trace, 0, OP_LOAD, "blur.in") == image // 128
        assert touched(trace, 0, OP_STORE, "blur.out") == image // 128
        assert touched(trace, 1, OP_LOAD, "sum3.in") == 20
        assert touched(trace, 2, OP_LOAD, "line.in") == 4
        copies = Counter((event.kind, event.bytes) for event in trace.events if isinstance(event, Memcpy))
        # the input, and the output's mapping that ends; the output, read and mapped; two rows that are written
        assert copies[("htod", image)] == 2
        assert copies[("dtoh", image)] == 2
        assert copies[("htod", 128)] == 2
        number = next(one.index for one in trace.allocations if one.name == "blur.out")
        last = trace.snapshots[-1].read(number)[1].view(np.float32)
        assert last[0] == 123
        assert np.count_nonzero(last) > 3500


def test_shared_virtual_memory(tmp_path: Path) -> None:
    output, messages = captured(SHARED, tmp_path)
    assert "not known to the capture" not in messages
    assert "outside of every buffer" not in messages
    with open_trace(output) as trace:
        assert {one.name: one.bytes for one in trace.allocations} == {"walk.first": 1024, "walk.out": 512}
        assert touched(trace, 0, OP_LOAD, "walk.first") == 4  # nodes 1, 6, ... 31 of 16 bytes each
        assert touched(trace, 0, OP_STORE, "walk.out") == 4
        number = next(one.index for one in trace.allocations if one.name == "walk.out")
        held = [np.any(snapshot.read(number)[1]) for snapshot in trace.snapshots if snapshot.contents_of(number)]
        assert held == [False, True]
