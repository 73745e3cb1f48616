"""OpenCL programs for the tests, as jobs of `program.py`."""

from __future__ import annotations

from typing import Any

SOURCE = """
__kernel void vector_add(__global const float *a, __global const float *b, __global float *c, const int n)
{
    int i = get_global_id(0);
    if (i < n)
        c[i] = a[i] + b[i];
}

__kernel void skipping_loop(__global const float *a, __global float *b, const int n)
{
    int i = get_global_id(0);
    float sum = 0;
    for (int k = 0; k < (i & 7); k++) {
        if ((k ^ i) & 1)
            sum += a[(i * 3 + k * 5) % n];
    }
    b[i] = sum;
}

__kernel void breaking_loop(__global const uint *a, __global uint *b, const int n)
{
    int i = get_global_id(0);
    uint found = 0;
    for (int k = 0; k < 16; k++) {
        uint value = a[(i + k * 7) % n];
        if ((value & 15u) == 3u)
            break;
        if (value & 1u)
            continue;
        found += a[value % n];
    }
    b[i] = found;
}

__kernel void histogram(__global const uint *values, __global uint *counts, __local uint *mine)
{
    int lane = get_local_id(0);
    mine[lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint value = values[get_global_id(0)];
    atomic_inc(&mine[value & 63u]);
    atomic_inc(&counts[value >> 26]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (mine[lane])
        atomic_add(&counts[64 + lane], mine[lane]);
}

__kernel void sum_of_group(__global const float *a, __global float *sums)
{
    __local float part[64];
    int lane = get_local_id(0);
    part[lane] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = get_local_size(0) / 2; reach > 0; reach /= 2) {
        if (lane < reach)
            part[lane] += part[lane + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        sums[get_group_id(0)] = part[0];
}

__kernel void transpose(__global const float *a, __global float *b, const int width, const int height)
{
    __local float tile[8][9];
    int x = get_global_id(0), y = get_global_id(1);
    tile[get_local_id(1)][get_local_id(0)] = a[y * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * 8 + get_local_id(0);
    y = get_group_id(0) * 8 + get_local_id(1);
    b[y * height + x] = tile[get_local_id(0)][get_local_id(1)];
}

__kernel void wide_loads(__global const float4 *a, __global float2 *b, __global const uchar *c)
{
    int i = get_global_id(0);
    float4 v = a[i];
    b[i] = v.xy * v.zw + (float)c[i];
}

__kernel void two_branches(__global const int *a, __global int *b)
{
    int i = get_global_id(0);
    int v = a[i];
    if (v & 1)
        b[i] = a[i ^ 1] + 3;
    else if (v & 2)
        b[i] = a[i ^ 2] * 5;
    b[i + 512] = v;
}

__kernel void tangled(__global const uint *a, __global uint *b, const int n)
{
    int i = get_global_id(0);
    uint s = 0;
    if (i % 13 == 5)
        return;
    for (int k = 0; k < 20; k++) {
        if ((a[(i + k) % n] & 7) == 1)
            continue;
        if ((a[(i * 3 + k) % n] & 63) == 2)
            break;
        if (k & 1) {
            if ((i ^ k) & 2)
                s += a[(i + 7 * k) % n];
            else if (i & 4)
                s += 3;
        }
        for (int j = 0; j < (i & 3); j++) {
            if (j == k % 3)
                goto after;
            s += a[(j * k + i) % n];
        }
    after:
        switch (s % 5) {
        case 0: s += a[i];  // and on
        case 1: s += 2; break;
        case 3: s += a[(i + 1) % n]; break;
        default: s++;
        }
    }
    b[i] = s;
}

__kernel void barriers_in_loops(__global float *a, __global float *b, __local float *l)
{
    int i = get_local_id(0), n = get_local_size(0);
    __local float m[64];
    float sum = 0;
    for (int r = 0; r < 5; r++) {
        l[i] = a[get_global_id(0)] + r;
        if (i < 64)
            m[i] = r * i;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += i % 3 == 0 ? l[(i + r) % n] : -m[(i * r) % 64];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    for (int s = n / 2; s > 0; s >>= 1) {
        l[i] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < s)
            sum += l[i + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    b[get_global_id(0)] = sum;
}
"""


def _job(kernel: str, sizes: list[int], buffers: list[dict[str, Any]], arguments: list[dict[str, Any]]) -> Any:
    half = len(sizes) // 2
    launch = {"kernel": kernel, "global": sizes[:half], "local": sizes[half:], "arguments": arguments}
    return {"source": SOURCE, "buffers": buffers, "launches": [launch]}


def _floats(n: int, seed: int = 1) -> dict[str, Any]:
    return {"bytes": 4 * n, "fill": "floats", "seed": seed}


def _random(n: int) -> dict[str, Any]:
    return {"bytes": 4 * n, "fill": "random32", "seed": 5}


def _zeros(n: int) -> dict[str, Any]:
    return {"bytes": 4 * n}


def _on(*numbers: int) -> list[dict[str, Any]]:
    return [{"buffer": number} for number in numbers]


JOBS: dict[str, Any] = {
    "vector_add": _job(
        "vector_add", [320, 64], [_floats(300), _floats(300, 2), _zeros(300)], [*_on(0, 1, 2), {"i32": 300}]
    ),
    "skipping_loop": _job("skipping_loop", [256, 64], [_floats(256), _zeros(256)], [*_on(0, 1), {"i32": 256}]),
    "breaking_loop": _job("breaking_loop", [256, 128], [_random(256), _zeros(256)], [*_on(0, 1), {"i32": 256}]),
    "tangled": _job("tangled", [400, 50], [_random(512), _zeros(512)], [*_on(0, 1), {"i32": 512}]),
    "barriers_in_loops": _job(
        "barriers_in_loops", [256, 128], [_floats(256), _zeros(256)], [*_on(0, 1), {"local": 512}]
    ),
    "histogram": _job("histogram", [256, 64], [_random(256), _zeros(128)], [*_on(0, 1), {"local": 256}]),
    "sum_of_group": _job("sum_of_group", [256, 64], [_floats(256), _zeros(4)], _on(0, 1)),
    "transpose": _job("transpose", [32, 16, 8, 8], [_floats(512), _zeros(512)], [*_on(0, 1), {"i32": 32}, {"i32": 16}]),
    "wide_loads": _job("wide_loads", [96, 48], [_floats(384), _zeros(192), _random(24)], _on(0, 1, 2)),
    "two_branches": _job("two_branches", [512, 64], [_random(512), _zeros(1024)], _on(0, 1)),
    # Arguments not in the order in which buffers were made; a buffer there twice; halves of one.
    "out_of_order": _job(
        "vector_add",
        [128, 64],
        [_zeros(128), _floats(256), _floats(128, 2), {"sub_buffer_of": 1, "origin": 512, "bytes": 512}],
        [*_on(3, 2, 0), {"i32": 128}],
    ),
    "one_twice": _job("vector_add", [128, 64], [_zeros(128), _floats(256)], [*_on(1, 1, 0), {"i32": 128}]),
    "both_halves": _job(
        "vector_add",
        [128, 64],
        [
            _floats(256),
            {"sub_buffer_of": 0, "origin": 512, "bytes": 512},
            _zeros(128),
            {"sub_buffer_of": 0, "origin": 0, "bytes": 512},
        ],
        [*_on(1, 3, 2), {"i32": 128}],
    ),
}
