"""A transformer layer serves 16 conversations; each has a KV cache for 4,096 tokens, the longest (PyPI: pyopencl).

python kv_cache.py [CONVERSATIONS, a multiple of 4] [LONGEST] [LAYERS]

A step gives every conversation one token more: of its prompt as long as it lasts, after that the model's own. Weights
are random, and so are prompts and lengths: 1/16 to 3/8 of the longest. Caches are allocated in full at the start, and
keys lie dimension by dimension, values token by token, so that lanes read neighbours.
"""

import sys

import numpy as np
import pyopencl as cl

conversations, longest, layers = (int(x) for x in (*sys.argv[1:], *("16", "4096", "1")[len(sys.argv) - 1 :]))
WIDTH, HEADS, TOKENS = 256, 4, 256

KERNELS = """
#define HEAD (WIDTH / HEADS)
#define PARTS 16
#define ROWS 4
#define SPLITS 8
#define CHUNK 64

kernel void standardize(global const float *x, global float *y) {
    local float sums[WIDTH], squares[WIDTH];
    int i = get_local_id(0);
    float value = x[get_global_id(0)];
    sums[i] = value;
    squares[i] = value * value;
    for (int apart = WIDTH / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < apart) { sums[i] += sums[i + apart]; squares[i] += squares[i + apart]; }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float mean = sums[0] / WIDTH;
    y[get_global_id(0)] = (value - mean) * rsqrt(squares[0] / WIDTH - mean * mean + 1e-5f);
}

kernel void product(global const float *x, global const float *w, global float *y, int in, int out, int add, int relu) {
    local float parts[PARTS][ROWS][32];
    int o = get_global_id(0), lane = get_local_id(0), part = get_local_id(1), b = get_global_id(2) * ROWS;
    float sums[ROWS] = {0};
    for (int i = part * (in / PARTS); i < (part + 1) * (in / PARTS); i += 4) {
        float4 column = (float4)(w[i * out + o], w[(i + 1) * out + o], w[(i + 2) * out + o], w[(i + 3) * out + o]);
        #pragma unroll
        for (int n = 0; n < ROWS; n++) sums[n] += dot(vload4(0, x + (b + n) * in + i), column);
    }
    #pragma unroll
    for (int n = 0; n < ROWS; n++) parts[part][n][lane] = sums[n];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part >= ROWS) return;
    int at = (b + part) * out + o;
    float sum = add ? y[at] : 0;
    for (int other = 0; other < PARTS; other++) sum += parts[other][part][lane];
    y[at] = relu ? fmax(sum, 0.0f) : sum;
}

kernel void append(global const float *qkv, global float *keys, global float *values, global const int *at,
                   int longest) {
    int i = get_global_id(0), b = get_global_id(1);
    if (at[b] < 0) return;
    keys[(b * WIDTH + i) * longest + at[b]] = qkv[(3 * b + 1) * WIDTH + i];
    values[(b * longest + at[b]) * WIDTH + i] = qkv[(3 * b + 2) * WIDTH + i];
}

kernel void scores(global const float *qkv, global const float *keys, global float *scores, global const int *at,
                   int longest) {
    int t = get_global_id(0), head = get_global_id(1), b = get_global_id(2);
    if (t > at[b]) return;
    global const float *query = qkv + 3 * b * WIDTH + head * HEAD;
    global const float *key = keys + (b * WIDTH + head * HEAD) * longest + t;
    float sum = 0;
    for (int i = 0; i < HEAD; i++, key += longest) sum += query[i] * *key;
    scores[(b * HEADS + head) * longest + t] = sum * rsqrt((float)HEAD);
}

kernel void softmax(global float *scores, global const int *at, int longest) {
    local float parts[WIDTH];
    int i = get_local_id(0), row = get_group_id(0), end = at[row / HEADS] + 1;
    global float *own = scores + row * longest;
    float highest = -INFINITY, sum = 0;
    for (int t = i; t < end; t += WIDTH) highest = fmax(highest, own[t]);
    parts[i] = highest;
    for (int apart = WIDTH / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < apart) parts[i] = fmax(parts[i], parts[i + apart]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    highest = parts[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = i; t < end; t += WIDTH) sum += own[t] = exp(own[t] - highest);
    parts[i] = sum;
    for (int apart = WIDTH / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < apart) parts[i] += parts[i + apart];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = i; t < end; t += WIDTH) own[t] /= parts[0];
}

kernel void attend(global const float *scores, global const float *values, global float *chunks, global const int *at,
                   int longest) {
    local float parts[SPLITS][HEAD];
    int i = get_local_id(0), part = get_local_id(1), chunk = get_group_id(1), row = get_global_id(2), b = row / HEADS;
    int t = chunk * CHUNK + part, end = min((chunk + 1) * CHUNK, at[b] + 1);
    global const float *value = values + (b * longest + t) * WIDTH + row % HEADS * HEAD + i;
    float sum = 0;
    for (; t < end; t += SPLITS, value += SPLITS * WIDTH) sum += scores[row * longest + t] * *value;
    parts[part][i] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part) return;
    for (int other = 1; other < SPLITS; other++) sum += parts[other][i];
    chunks[(row * (longest / CHUNK) + chunk) * HEAD + i] = sum;
}

kernel void gather(global const float *chunks, global float *y, global const int *at, int longest) {
    int i = get_global_id(0), b = get_global_id(1), row = b * HEADS + i / HEAD;
    float sum = 0;
    for (int chunk = 0; chunk <= at[b] / CHUNK; chunk++)
        sum += chunks[(row * (longest / CHUNK) + chunk) * HEAD + i % HEAD];
    y[b * WIDTH + i] = sum;
}
"""

rng = np.random.default_rng(1)
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
program = cl.Program(context, KERNELS).build([f"-DWIDTH={WIDTH}", f"-DHEADS={HEADS}"])


def zeros(*shape):
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * int(np.prod(shape)))
    cl.enqueue_copy(queue, buffer, np.zeros(shape, np.float32))
    return buffer


def weights(rows, columns):
    data = rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)
    return cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=data)


x, y, qkv, hidden, logits = (zeros(conversations, WIDTH * n) for n in (1, 1, 3, 4, 1))
probabilities, chunks = zeros(conversations, HEADS, longest), zeros(conversations, HEADS, longest // 64, WIDTH // HEADS)
at = zeros(conversations)
caches = [(zeros(conversations, WIDTH, longest), zeros(conversations, longest, WIDTH)) for _ in range(layers)]
shapes = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
models = [[weights(*shape) for shape in shapes] for _ in range(layers)]
unembed = weights(WIDTH, TOKENS)
embedding = rng.normal(size=(TOKENS, WIDTH)).astype(np.float32)
NAMES = ("standardize", "product", "append", "scores", "softmax", "attend", "gather")
kernels = {name: getattr(program, name) for name in NAMES}


def run(name, size, group, *arguments):
    kernels[name](queue, size, group, *(np.int32(a) if isinstance(a, int) else a for a in arguments))


def product(source, weight, result, rows, columns, add=0, relu=0):
    run("product", (columns, 16, conversations // 4), (32, 16, 1), source, weight, result, rows, columns, add, relu)


lengths = rng.integers(longest // 16, longest * 3 // 8, conversations, endpoint=True)
prompts = rng.integers(0, TOKENS, (conversations, longest))
newest = prompts[:, 0]
for step in range(lengths.max()):
    # Conversations begin when they must to have their length at the end.
    positions = (step - (lengths.max() - lengths)).astype(np.int32)
    tokens = np.where(positions < lengths // 2, prompts[range(conversations), np.maximum(positions, 0)], newest)
    cl.enqueue_copy(queue, at, positions)
    cl.enqueue_copy(queue, x, embedding[tokens])
    length = -(-(step + 1) // 64) * 64
    for (keys, values), (w_qkv, w_out, w_up, w_down) in zip(caches, models, strict=True):
        run("standardize", (conversations * WIDTH,), (WIDTH,), x, y)
        product(y, w_qkv, qkv, WIDTH, 3 * WIDTH)
        run("append", (WIDTH, conversations), (WIDTH, 1), qkv, keys, values, at, longest)
        run("scores", (length, HEADS, conversations), (64, 1, 1), qkv, keys, probabilities, at, longest)
        run("softmax", (conversations * HEADS * WIDTH,), (WIDTH,), probabilities, at, longest)
        size = (WIDTH // HEADS, length // 64 * 8, conversations * HEADS)
        run("attend", size, (WIDTH // HEADS, 8, 1), probabilities, values, chunks, at, longest)
        run("gather", (WIDTH, conversations), (WIDTH, 1), chunks, y, at, longest)
        product(y, w_out, x, WIDTH, WIDTH, add=1)
        run("standardize", (conversations * WIDTH,), (WIDTH,), x, y)
        product(y, w_up, hidden, WIDTH, 4 * WIDTH, relu=1)
        product(hidden, w_down, x, 4 * WIDTH, WIDTH, add=1)
    run("standardize", (conversations * WIDTH,), (WIDTH,), x, y)
    product(y, unembed, logits, WIDTH, TOKENS)
    result = np.empty((conversations, TOKENS), np.float32)
    cl.enqueue_copy(queue, result, logits)
    newest = result.argmax(axis=1)
in_use = lengths.mean() / longest
print(f"{lengths.sum()} tokens of {conversations} conversations; {in_use:.1%} of the caches is in use")
print("newest tokens", *newest[:8])
