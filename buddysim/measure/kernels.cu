// The microbenchmarks of docs/validation/method.md, and a few kernels of programs, in CUDA C++ for NVRTC.
//
// Each has the blocks, warps and accesses of its synthetic workload (buddysim/synthetic/). `sums` may be null: then
// nothing is written, and the compiler, which can't know that, does not remove the loads.

#define KERNEL extern "C" __global__ void

// A cycle counter that is read after `value` is known.
template <typename Value>
__device__ inline long long cycles_after(Value value)
{
#ifdef __CUDA_ARCH__
    long long cycles;
    asm volatile("{ .reg .b64 known; mov.b64 known, %1; mov.u64 %0, %%clock64; }" : "=l"(cycles) : "l"((long long)value) : "memory");
    return cycles;
#else
    (void)value;
    return clock64();
#endif
}

// One warp, whose loads depend on each other. result: the last address, and the cycles of `hops`.
KERNEL chase(const unsigned long long *first, long long warm, long long hops, unsigned long long *result)
{
    const unsigned long long *at = first;
    for (long long hop = 0; hop < warm; ++hop)
        at = (const unsigned long long *)*at;
    const long long start = cycles_after((unsigned long long)at);
    for (long long hop = 0; hop < hops; ++hop)
        at = (const unsigned long long *)*at;
    const long long end = cycles_after((unsigned long long)at);
    if (threadIdx.x == 0) {
        result[0] = (unsigned long long)at;
        result[1] = (unsigned long long)(end - start);
    }
}

// A block of an SM reads lines of one set, the same for all, repeatedly: a warp's n-th load is line warp + n warps.
KERNEL sm_loads(const float *__restrict__ set, unsigned lines, long long loads, float *sums)
{
    const unsigned warps = blockDim.x / 32, lane = threadIdx.x % 32, step = warps % lines;
    unsigned line = threadIdx.x / 32 % lines;
    float sum = 0;
#pragma unroll 16
    for (long long n = 0; n < loads; ++n) {
        sum += set[(size_t)line * 32 + lane];
        line += step;
        line -= line >= lines ? lines : 0;
    }
    if (sums)
        sums[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// A block of 1,024 threads reads one chunk of 512 KiB: 32 parts of 16 KiB, interleaved with those of other chunks.
KERNEL l2_loads(const double *__restrict__ set, unsigned chunks, double *sums)
{
    const unsigned chunk = blockIdx.x % chunks;
    double sum = 0;
#pragma unroll 4
    for (unsigned part = 0; part < 32; ++part) {
        const double *own = set + ((size_t)part * chunks + chunk) * 2048 + threadIdx.x;
        sum += own[0] + own[1024];
    }
    if (sums)
        sums[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// STREAM and stencils: an element of each thread. Unused shared memory limits the resident blocks.
#define STREAM(name, statement)                                                                                \
    KERNEL stream_##name(double *__restrict__ a, const double *__restrict__ b, const double *__restrict__ c, double k) \
    {                                                                                                          \
        const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;                                        \
        statement;                                                                                             \
    }

STREAM(init, a[i] = k)
STREAM(read, if (b[i] == k) a[i] = k)
STREAM(scale, a[i] = k * b[i])
STREAM(triad, a[i] = b[i] + k * c[i])
STREAM(3pt, a[i] = k * (b[i - 1] + b[i] + b[i + 1]))
STREAM(5pt, a[i] = k * (b[i - 2] + b[i - 1] + b[i] + b[i + 1] + b[i + 2]))

// 32 warps of one block load words `stride` apart from the L1. `zero` is 0, which the compiler can't know.
KERNEL l1_strides(const float *__restrict__ array, unsigned stride, long long rounds, unsigned zero, float *sums,
                  long long *cycles)
{
    const float *own = array + threadIdx.x % 32 * stride + threadIdx.x / 32 % 2 * 32 * stride;
    float sum = 0;
    __syncthreads();
    const long long start = clock64();
    for (long long round = 0; round < rounds; ++round) {
        const float *at = own + ((unsigned)round & zero);
        sum += at[0] + at[4] + at[8] + at[12] + at[20] + at[16] + at[24] + at[28];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        *cycles = clock64() - start;
}

KERNEL vector_add(float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c, unsigned n)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = b[i] + c[i];
}

// PolyBench's gemm: a thread for each element of the product, no tiles.
KERNEL gemm(float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c, unsigned n)
{
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n)
        return;
    float sum = 0;
    for (unsigned k = 0; k < n; ++k)
        sum += b[(size_t)row * n + k] * c[(size_t)k * n + column];
    a[(size_t)row * n + column] = sum;
}

// A convolution of 3 x 3, all weights those of `c`.
KERNEL convolution(float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c, unsigned n)
{
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row == 0 || column == 0 || row >= n - 1 || column >= n - 1)
        return;
    float sum = 0;
    for (unsigned y = 0; y < 3; ++y)
        for (unsigned x = 0; x < 3; ++x)
            sum += c[3 * y + x] * b[(size_t)(row + y - 1) * n + column + x - 1];
    a[(size_t)row * n + column] = sum;
}
