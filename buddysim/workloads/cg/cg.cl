/* NAS CG (RNR-94-007, section 2.3.4): the inverse power method, with 25 iterations of conjugate gradients each. */

#define GROUP 256
#define ROW 32 /* work-items of a row's product */

/* Slots of `scalars`. */
#define RHO 0
#define ALPHA 1
#define BETA 2
#define RESIDUAL 3
#define X_DOT_Z 4
#define Z_DOT_Z 5

static double group_sum(double own, local double *shared) {
    int lane = get_local_id(0);
    shared[lane] = own;
    for (int width = GROUP / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width) shared[lane] += shared[lane + width];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return shared[0];
}

static double total(global const double *partial, local double *shared) {
    double own = 0.0;
    for (int i = get_local_id(0); i < PARTIALS; i += GROUP) own += partial[i];
    return group_sum(own, shared);
}

/* result = A vector, a row for each group. */
kernel void multiply(global const double *a, global const int *colidx, global const int *rowstr,
                     global const double *vector, global double *result) {
    local double shared[ROW];
    int row = get_group_id(0), lane = get_local_id(0), end = rowstr[row + 1];
    double own = 0.0;
    for (int k = rowstr[row] + lane; k < end; k += ROW) own += a[k] * vector[colidx[k]];
    shared[lane] = own;
    for (int width = ROW / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width) shared[lane] += shared[lane + width];
    }
    if (lane == 0) result[row] = shared[0];
}

kernel void start(global const double *x, global double *z, global double *p, global double *q, global double *r,
                  global double *partial) {
    local double shared[GROUP];
    int i = get_global_id(0);
    double value = 0.0;
    if (i < N) {
        value = x[i];
        q[i] = 0.0;
        z[i] = 0.0;
        r[i] = value;
        p[i] = value;
    }
    double sum = group_sum(value * value, shared);
    if (get_local_id(0) == 0) partial[get_group_id(0)] = sum;
}

kernel void first_rho(global const double *partial, global double *scalars) {
    local double shared[GROUP];
    double rho = total(partial, shared);
    if (get_local_id(0) == 0) scalars[RHO] = rho;
}

kernel void dot_pq(global const double *p, global const double *q, global double *partial) {
    local double shared[GROUP];
    int i = get_global_id(0);
    double sum = group_sum(i < N ? p[i] * q[i] : 0.0, shared);
    if (get_local_id(0) == 0) partial[get_group_id(0)] = sum;
}

kernel void set_alpha(global const double *partial, global double *scalars) {
    local double shared[GROUP];
    double d = total(partial, shared);
    if (get_local_id(0) == 0) scalars[ALPHA] = scalars[RHO] / d;
}

kernel void advance(global double *z, global const double *p, global const double *q, global double *r,
                    global const double *scalars, global double *partial) {
    local double shared[GROUP];
    int i = get_global_id(0);
    double value = 0.0;
    if (i < N) {
        double alpha = scalars[ALPHA];
        z[i] += alpha * p[i];
        value = r[i] - alpha * q[i];
        r[i] = value;
    }
    double sum = group_sum(value * value, shared);
    if (get_local_id(0) == 0) partial[get_group_id(0)] = sum;
}

kernel void set_beta(global const double *partial, global double *scalars) {
    local double shared[GROUP];
    double rho = total(partial, shared);
    if (get_local_id(0) == 0) {
        scalars[BETA] = rho / scalars[RHO];
        scalars[RHO] = rho;
    }
}

kernel void update_direction(global double *p, global const double *r, global const double *scalars) {
    int i = get_global_id(0);
    if (i < N) p[i] = r[i] + scalars[BETA] * p[i];
}

/* |x - A z|^2, x z and z z; r holds A z. */
kernel void norms(global const double *x, global const double *z, global const double *r, global double *partial) {
    local double shared[GROUP];
    int i = get_global_id(0);
    double of_x = i < N ? x[i] : 0.0, of_z = i < N ? z[i] : 0.0, rest = i < N ? of_x - r[i] : 0.0;
    double sums[3] = {rest * rest, of_x * of_z, of_z * of_z};
    for (int which = 0; which < 3; which++) {
        double sum = group_sum(sums[which], shared);
        if (get_local_id(0) == 0) partial[which * PARTIALS + get_group_id(0)] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void set_norms(global const double *partial, global double *scalars) {
    local double shared[GROUP];
    for (int which = 0; which < 3; which++) {
        double sum = total(partial + which * PARTIALS, shared);
        if (get_local_id(0) == 0) scalars[RESIDUAL + which] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void normalise(global double *x, global const double *z, global const double *scalars) {
    int i = get_global_id(0);
    if (i < N) x[i] = z[i] / sqrt(scalars[Z_DOT_Z]);
}
