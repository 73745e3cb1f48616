// Kernels of the operators that `opencl_operators.py` measures. A group of GROUP work-items has a row, or a tile of results.

#define TILE 16

kernel void product(const int m, const int n, const int k, global const float *left, global const float *right,
                    global float *out)
{
    local float rows[TILE][TILE], columns[TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
    const size_t one = get_global_id(2);
    left += one * m * k;
    right += one * k * n;
    float sum = 0;
    for (int first = 0; first < k; first += TILE) {
        rows[y][x] = row < m && first + x < k ? left[(size_t)row * k + first + x] : 0;
        columns[y][x] = column < n && first + y < k ? right[(size_t)(first + y) * n + column] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int at = 0; at < TILE; at++)
            sum += rows[y][at] * columns[at][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && column < n)
        out[one * m * n + (size_t)row * n + column] = sum;
}

kernel void elementwise(const int row, global const float *in, global float *out)
{
    const size_t at = get_global_id(0);
    out[at] = in[at] + 1;
}

float sum(float left, float right)
{
    return left + right;
}

// One value of all that the work-items of the group have, two made one by COMBINE.
#define OF_GROUP(NAME, COMBINE) \
float NAME(float value, local float *values) \
{ \
    const int item = get_local_id(0); \
    values[item] = value; \
    barrier(CLK_LOCAL_MEM_FENCE); \
    for (int half_of = GROUP / 2; half_of; half_of /= 2) { \
        if (item < half_of) \
            values[item] = COMBINE(values[item], values[item + half_of]); \
        barrier(CLK_LOCAL_MEM_FENCE); \
    } \
    value = values[0]; \
    barrier(CLK_LOCAL_MEM_FENCE); \
    return value; \
}

OF_GROUP(sum_of_group, sum)
OF_GROUP(largest_of_group, fmax)

kernel void norm(const int row, global const float *in, global float *out)
{
    local float values[GROUP];
    const size_t first = get_group_id(0) * (size_t)row;
    float sum = 0, squares = 0;
    for (int at = get_local_id(0); at < row; at += GROUP) {
        sum += in[first + at];
        squares += in[first + at] * in[first + at];
    }
    const float mean = sum_of_group(sum, values) / row;
    const float variance = sum_of_group(squares, values) / row - mean * mean;
    for (int at = get_local_id(0); at < row; at += GROUP)
        out[first + at] = (in[first + at] - mean) * rsqrt(variance + 1e-5f);
}

// Of a norm without weights: the gradient less its mean, and less what moves along the normalised row.
kernel void norm_backward(const int row, global const float *gradient, global const float *normalised, global float *out)
{
    local float values[GROUP];
    const size_t first = get_group_id(0) * (size_t)row;
    float sum = 0, along = 0;
    for (int at = get_local_id(0); at < row; at += GROUP) {
        sum += gradient[first + at];
        along += gradient[first + at] * normalised[first + at];
    }
    const float mean = sum_of_group(sum, values) / row;
    const float slope = sum_of_group(along, values) / row;
    for (int at = get_local_id(0); at < row; at += GROUP)
        out[first + at] = gradient[first + at] - mean - slope * normalised[first + at];
}

kernel void softmax(const int row, global const float *in, global float *out)
{
    local float values[GROUP];
    const size_t first = get_group_id(0) * (size_t)row;
    const int item = get_local_id(0);
    float largest = -INFINITY, sum = 0;
    for (int at = item; at < row; at += GROUP)
        largest = fmax(largest, in[first + at]);
    largest = largest_of_group(largest, values);
    for (int at = item; at < row; at += GROUP)
        sum += exp(in[first + at] - largest);
    sum = sum_of_group(sum, values);
    for (int at = item; at < row; at += GROUP)
        out[first + at] = exp(in[first + at] - largest) / sum;
}

kernel void gather(const int row, global const float *in, global const int *index, global float *out)
{
    const size_t to = get_group_id(0) * (size_t)row, from = index[get_group_id(0)] * (size_t)row;
    for (int at = get_local_id(0); at < row; at += GROUP)
        out[to + at] = in[from + at];
}

kernel void nothing(global float *out)
{
}
