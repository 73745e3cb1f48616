/* NAS EP (RNR-94-007, section 2.2.1): pairs of Gaussian deviates by acceptance and rejection, counted in square annuli.
 * Batches of a pass lie side by side, so that work-items next to each other touch doubles next to each other. */

#define MASK ((1UL << 46) - 1)
#define MULTIPLIER 1220703125UL
#define ANNULI 10
#define GROUP 256

/* The seed of a batch: SEED a^(2 PAIRS batch) mod 2^46. Products wrap modulo 2^64, which leaves them right modulo 2^46. */
static ulong seed_of(ulong batch) {
    ulong power = MULTIPLIER, seed = SEED;
    for (ulong left = 2UL * PAIRS; left > 1; left >>= 1) power = power * power & MASK;
    for (ulong left = batch; left; left >>= 1) {
        if (left & 1) seed = seed * power & MASK;
        power = power * power & MASK;
    }
    return seed;
}

kernel void draw(global double *x1, global double *x2, int pass) {
    size_t lane = get_global_id(0);
    ulong x = seed_of((ulong)pass * BATCHES + lane);
    for (int i = 0; i < PAIRS; i++) {
        x = x * MULTIPLIER & MASK;
        x1[(size_t)i * BATCHES + lane] = (double)x * 0x1p-46;
        x = x * MULTIPLIER & MASK;
        x2[(size_t)i * BATCHES + lane] = (double)x * 0x1p-46;
    }
}

kernel void tally(global const double *x1, global const double *x2, global double *qq, global double *sx, global double *sy,
                  int valid) {
    size_t lane = get_global_id(0);
    double sum_x = 0.0, sum_y = 0.0;
    for (int l = 0; l < ANNULI; l++) qq[l * BATCHES + lane] = 0.0;
    if (lane < valid) {
        for (int i = 0; i < PAIRS; i++) {
            double x = 2.0 * x1[(size_t)i * BATCHES + lane] - 1.0, y = 2.0 * x2[(size_t)i * BATCHES + lane] - 1.0;
            double t1 = x * x + y * y;
            if (t1 <= 1.0) {
                double t2 = sqrt(-2.0 * log(t1) / t1), t3 = x * t2, t4 = y * t2;
                int l = (int)fmax(fabs(t3), fabs(t4));
                qq[l * BATCHES + lane] += 1.0;
                sum_x += t3;
                sum_y += t4;
            }
        }
    }
    sx[lane] = sum_x;
    sy[lane] = sum_y;
}

static double sum_of(global const double *values, local double *partial) {
    int lane = get_local_id(0);
    double sum = 0.0;
    for (int i = lane; i < BATCHES; i += GROUP) sum += values[i];
    partial[lane] = sum;
    for (int width = GROUP / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width) partial[lane] += partial[lane + width];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = partial[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

/* totals: counts of the annuli, then the sums of both deviates. One group of GROUP work-items. */
kernel void gather(global const double *qq, global const double *sx, global const double *sy, global double *totals) {
    local double partial[GROUP];
    for (int l = 0; l < ANNULI + 2; l++) {
        global const double *values = l < ANNULI ? qq + l * BATCHES : l == ANNULI ? sx : sy;
        double sum = sum_of(values, partial);
        if (get_local_id(0) == 0) totals[l] += sum;
    }
}
