"""A program whose OpenCL kernels multiply matrices and convolve images by tiles of 128 x 128, as GPU libraries do.

``python tiled_products.py gemm M N K`` or ``convolution IMAGES CHANNELS EDGE FILTERS``; NumPy checks the result.
"""

from __future__ import annotations

import sys

import numpy as np
import pyopencl as cl

COMMON = """
#define TILE 128
#define DEPTH 8
#define THREADS 256

/* 8 x 8 results of a thread: rows of 4 and columns of 4, half a tile apart. */
#define RESULTS(i, j) row = first_m + (i / 4) * 64 + (t / 16) * 4 + i % 4, column = first_n + j * 64 + (t % 16) * 4

#define TILE_STEP                                                                                  \\
    for (int k = 0; k < DEPTH; k++) {                                                         \\
        float a[8], b[8];                                                                     \\
        for (int i = 0; i < 8; i++) a[i] = left_tile[step % 2][k][(i / 4) * 64 + (t / 16) * 4 + i % 4];    \\
        for (int j = 0; j < 8; j++) b[j] = right_tile[step % 2][k][(j / 4) * 64 + (t % 16) * 4 + j % 4];   \\
        for (int i = 0; i < 8; i++)                                                           \\
            for (int j = 0; j < 8; j++) sum[i][j] += a[i] * b[j];                             \\
    }
"""

GEMM = (
    COMMON
    + """
kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void gemm(global const float *left, global const float *right, global float *out, int m, int n, int k_all) {
    local float left_tile[2][DEPTH][TILE], right_tile[2][DEPTH][TILE];
    int t = get_local_id(0), tiles_m = m / TILE;
    int first_m = get_group_id(0) % tiles_m * TILE, first_n = get_group_id(0) / tiles_m * TILE;
    float sum[8][8] = {{0.0f}};
    for (int step = 0; step < k_all / DEPTH; step++) {
        float4 a = *(global const float4 *)(left + (size_t)(first_m + t / 2) * k_all + step * DEPTH + t % 2 * 4);
        float4 b = *(global const float4 *)(right + (size_t)(step * DEPTH + t / 32) * n + first_n + t % 32 * 4);
        left_tile[step % 2][t % 2 * 4 + 0][t / 2] = a.x;
        left_tile[step % 2][t % 2 * 4 + 1][t / 2] = a.y;
        left_tile[step % 2][t % 2 * 4 + 2][t / 2] = a.z;
        left_tile[step % 2][t % 2 * 4 + 3][t / 2] = a.w;
        vstore4(b, t % 32, right_tile[step % 2][t / 32]);
        barrier(CLK_LOCAL_MEM_FENCE);
        TILE_STEP
    }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 2; j++) {
            int RESULTS(i, j);
            *(global float4 *)(out + (size_t)row * n + column) =
                (float4)(sum[i][4 * j], sum[i][4 * j + 1], sum[i][4 * j + 2], sum[i][4 * j + 3]);
        }
}
"""
)

CONVOLUTION = (
    COMMON
    + """
/* 3 x 3, one pixel of padding: rows are filters, columns the pixels of all images. */
kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void convolution(global const float *data, global const float *filters, global float *out, int channels, int edge,
                 int count) {
    local float left_tile[2][DEPTH][TILE], right_tile[2][DEPTH][TILE];
    int t = get_local_id(0), tiles_m = count / TILE, k_all = channels * 9, pixels = edge * edge;
    int first_m = get_group_id(0) % tiles_m * TILE, first_n = get_group_id(0) / tiles_m * TILE;
    float sum[8][8] = {{0.0f}};
    for (int step = 0; step < k_all / DEPTH; step++) {
        float4 a = *(global const float4 *)(filters + (size_t)(first_m + t / 2) * k_all + step * DEPTH + t % 2 * 4);
        left_tile[step % 2][t % 2 * 4 + 0][t / 2] = a.x;
        left_tile[step % 2][t % 2 * 4 + 1][t / 2] = a.y;
        left_tile[step % 2][t % 2 * 4 + 2][t / 2] = a.z;
        left_tile[step % 2][t % 2 * 4 + 3][t / 2] = a.w;
        for (int part = 0; part < 4; part++) {
            int k = part * 2 + t / TILE, position = step * DEPTH + k, pixel = first_n + t % TILE;
            int image = pixel / pixels, y = pixel % pixels / edge + position % 9 / 3 - 1;
            int x = pixel % edge + position % 3 - 1;
            float value = 0.0f;
            if (x >= 0 && y >= 0 && x < edge && y < edge)
                value = data[((size_t)image * channels + position / 9) * pixels + y * edge + x];
            right_tile[step % 2][k][t % TILE] = value;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        TILE_STEP
    }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 2; j++) {
            int RESULTS(i, j);
            *(global float4 *)(out + ((size_t)(column / pixels) * count + row) * pixels + column % pixels) =
                (float4)(sum[i][4 * j], sum[i][4 * j + 1], sum[i][4 * j + 2], sum[i][4 * j + 3]);
        }
}
"""
)


def buffers(context: cl.Context, arrays: list[np.ndarray]) -> list[cl.Buffer]:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return [cl.Buffer(context, flags, hostbuf=array) for array in arrays]


def main() -> None:
    name, sizes = sys.argv[1], list(map(int, sys.argv[2:]))
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    program = cl.Program(context, GEMM if name == "gemm" else CONVOLUTION).build()
    random = np.random.default_rng(1)
    if name == "gemm":
        m, n, k = sizes
        left, right = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        expected = left @ right
        arrays, numbers, groups = [left, right], sizes, m * n // 128**2
    else:
        images, channels, edge, count = sizes
        left = random.integers(-3, 4, (images, channels, edge, edge)).astype(np.float32)
        right = random.integers(-3, 4, (count, channels, 3, 3)).astype(np.float32)
        around = np.pad(left, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (2, 3))
        expected = np.einsum("icyxrs,kcrs->ikyx", windows, right, optimize=True)
        arrays, numbers, groups = [left, right], [channels, edge, count], images * edge**2 * count // 128**2
    result = np.zeros(expected.shape, np.float32)
    memory = buffers(context, [*arrays, result])
    kernel = getattr(program, name)
    kernel(queue, (256 * groups,), (256,), *memory, *map(np.int32, numbers))
    cl.enqueue_copy(queue, result, memory[2])
    assert np.array_equal(result, expected)


main()
