/* Elastic waves in velocity and stress on a staggered grid, of second order (Virieux 1986), absorbed by convolutional
 * perfectly matched layers (Komatitsch and Martin 2007). Indices are from 1; arrays of a slab have a plane more at
 * either end in z, those of the layers' memory do not. */

#define FIELD(k) ((size_t)(k) * NY * NX + (size_t)(j - 1) * NX + (i - 1))
#define HERE FIELD(k)
#define MEMORY ((size_t)(k - 1) * NY * NX + (size_t)(j - 1) * NX + (i - 1))
#define CELL                                                                                                          \
    int i = get_global_id(0) + 1, j = get_global_id(1) + 1, k = get_global_id(2) + 1, level = k + offset;              \
    if (i > NX || j > NY || k > planes) return;

/* Rows of a direction's coefficients: at whole points, then at half points. */
#define A(of, at) of##_pml[at - 1]
#define B(of, at) of##_pml[N_##of + at - 1]
#define K(of, at) of##_pml[2 * N_##of + at - 1]
#define A_HALF(of, at) of##_pml[3 * N_##of + at - 1]
#define B_HALF(of, at) of##_pml[4 * N_##of + at - 1]
#define K_HALF(of, at) of##_pml[5 * N_##of + at - 1]
#define N_x NX
#define N_y NY
#define N_z NZ

/* The stretched derivative: d / K + memory, after memory = B memory + A d. */
static double stretched(double d, global double *memory, double a, double b, double kappa) {
    double now = b * *memory + a * d;
    *memory = now;
    return d / kappa + now;
}

kernel void stress_normal(global const double *vx, global const double *vy, global const double *vz,
                          global double *sigmaxx, global double *sigmayy, global double *sigmazz,
                          global double *memory_dvx_dx, global double *memory_dvy_dy, global double *memory_dvz_dz,
                          global const double *x_pml, global const double *y_pml, global const double *z_pml,
                          int planes, int offset) {
    CELL
    if (level < 2 || j < 2 || i > NX - 1) return;
    size_t at = HERE;
    double dvx = (vx[at + 1] - vx[at]) * ONE_OVER_H;
    double dvy = (vy[at] - vy[at - NX]) * ONE_OVER_H;
    double dvz = (vz[at] - vz[at - NX * NY]) * ONE_OVER_H;
    dvx = stretched(dvx, memory_dvx_dx + MEMORY, A_HALF(x, i), B_HALF(x, i), K_HALF(x, i));
    dvy = stretched(dvy, memory_dvy_dy + MEMORY, A(y, j), B(y, j), K(y, j));
    dvz = stretched(dvz, memory_dvz_dz + MEMORY, A(z, level), B(z, level), K(z, level));
    sigmaxx[at] += DT * (LAMBDA_2MU * dvx + LAMBDA * (dvy + dvz));
    sigmayy[at] += DT * (LAMBDA * (dvx + dvz) + LAMBDA_2MU * dvy);
    sigmazz[at] += DT * (LAMBDA * (dvx + dvy) + LAMBDA_2MU * dvz);
}

kernel void stress_xy(global const double *vx, global const double *vy, global double *sigmaxy,
                      global double *memory_dvy_dx, global double *memory_dvx_dy, global const double *x_pml,
                      global const double *y_pml, int planes, int offset) {
    CELL
    if (j > NY - 1 || i < 2) return;
    size_t at = HERE;
    double dvy = (vy[at] - vy[at - 1]) * ONE_OVER_H, dvx = (vx[at + NX] - vx[at]) * ONE_OVER_H;
    dvy = stretched(dvy, memory_dvy_dx + MEMORY, A(x, i), B(x, i), K(x, i));
    dvx = stretched(dvx, memory_dvx_dy + MEMORY, A_HALF(y, j), B_HALF(y, j), K_HALF(y, j));
    sigmaxy[at] += DT * MU * (dvy + dvx);
}

kernel void stress_xz(global const double *vx, global const double *vz, global double *sigmaxz,
                      global double *memory_dvz_dx, global double *memory_dvx_dz, global const double *x_pml,
                      global const double *z_pml, int planes, int offset) {
    CELL
    if (level > NZ - 1 || i < 2) return;
    size_t at = HERE;
    double dvz = (vz[at] - vz[at - 1]) * ONE_OVER_H, dvx = (vx[at + NX * NY] - vx[at]) * ONE_OVER_H;
    dvz = stretched(dvz, memory_dvz_dx + MEMORY, A(x, i), B(x, i), K(x, i));
    dvx = stretched(dvx, memory_dvx_dz + MEMORY, A_HALF(z, level), B_HALF(z, level), K_HALF(z, level));
    sigmaxz[at] += DT * MU * (dvz + dvx);
}

kernel void stress_yz(global const double *vy, global const double *vz, global double *sigmayz,
                      global double *memory_dvz_dy, global double *memory_dvy_dz, global const double *y_pml,
                      global const double *z_pml, int planes, int offset) {
    CELL
    if (level > NZ - 1 || j > NY - 1) return;
    size_t at = HERE;
    double dvz = (vz[at + NX] - vz[at]) * ONE_OVER_H, dvy = (vy[at + NX * NY] - vy[at]) * ONE_OVER_H;
    dvz = stretched(dvz, memory_dvz_dy + MEMORY, A_HALF(y, j), B_HALF(y, j), K_HALF(y, j));
    dvy = stretched(dvy, memory_dvy_dz + MEMORY, A_HALF(z, level), B_HALF(z, level), K_HALF(z, level));
    sigmayz[at] += DT * MU * (dvz + dvy);
}

kernel void velocity_x(global double *vx, global const double *sigmaxx, global const double *sigmaxy,
                       global const double *sigmaxz, global double *memory_dsigmaxx_dx,
                       global double *memory_dsigmaxy_dy, global double *memory_dsigmaxz_dz,
                       global const double *x_pml, global const double *y_pml, global const double *z_pml, int planes,
                       int offset) {
    CELL
    if (level < 2 || j < 2 || i < 2) return;
    size_t at = HERE;
    double dx = (sigmaxx[at] - sigmaxx[at - 1]) * ONE_OVER_H;
    double dy = (sigmaxy[at] - sigmaxy[at - NX]) * ONE_OVER_H;
    double dz = (sigmaxz[at] - sigmaxz[at - NX * NY]) * ONE_OVER_H;
    dx = stretched(dx, memory_dsigmaxx_dx + MEMORY, A(x, i), B(x, i), K(x, i));
    dy = stretched(dy, memory_dsigmaxy_dy + MEMORY, A(y, j), B(y, j), K(y, j));
    dz = stretched(dz, memory_dsigmaxz_dz + MEMORY, A(z, level), B(z, level), K(z, level));
    vx[at] += DT / RHO * (dx + dy + dz);
}

kernel void velocity_y(global double *vy, global const double *sigmaxy, global const double *sigmayy,
                       global const double *sigmayz, global double *memory_dsigmaxy_dx,
                       global double *memory_dsigmayy_dy, global double *memory_dsigmayz_dz,
                       global const double *x_pml, global const double *y_pml, global const double *z_pml, int planes,
                       int offset) {
    CELL
    if (level < 2 || j > NY - 1 || i > NX - 1) return;
    size_t at = HERE;
    double dx = (sigmaxy[at + 1] - sigmaxy[at]) * ONE_OVER_H;
    double dy = (sigmayy[at + NX] - sigmayy[at]) * ONE_OVER_H;
    double dz = (sigmayz[at] - sigmayz[at - NX * NY]) * ONE_OVER_H;
    dx = stretched(dx, memory_dsigmaxy_dx + MEMORY, A_HALF(x, i), B_HALF(x, i), K_HALF(x, i));
    dy = stretched(dy, memory_dsigmayy_dy + MEMORY, A_HALF(y, j), B_HALF(y, j), K_HALF(y, j));
    dz = stretched(dz, memory_dsigmayz_dz + MEMORY, A(z, level), B(z, level), K(z, level));
    vy[at] += DT / RHO * (dx + dy + dz);
}

kernel void velocity_z(global double *vz, global const double *sigmaxz, global const double *sigmayz,
                       global const double *sigmazz, global double *memory_dsigmaxz_dx,
                       global double *memory_dsigmayz_dy, global double *memory_dsigmazz_dz,
                       global const double *x_pml, global const double *y_pml, global const double *z_pml, int planes,
                       int offset) {
    CELL
    if (level > NZ - 1 || j < 2 || i > NX - 1) return;
    size_t at = HERE;
    double dx = (sigmaxz[at + 1] - sigmaxz[at]) * ONE_OVER_H;
    double dy = (sigmayz[at] - sigmayz[at - NX]) * ONE_OVER_H;
    double dz = (sigmazz[at + NX * NY] - sigmazz[at]) * ONE_OVER_H;
    dx = stretched(dx, memory_dsigmaxz_dx + MEMORY, A_HALF(x, i), B_HALF(x, i), K_HALF(x, i));
    dy = stretched(dy, memory_dsigmayz_dy + MEMORY, A(y, j), B(y, j), K(y, j));
    dz = stretched(dz, memory_dsigmazz_dz + MEMORY, A_HALF(z, level), B_HALF(z, level), K_HALF(z, level));
    vz[at] += DT / RHO * (dx + dy + dz);
}

/* The force in the source's cell, where it is in this slab; walls at rest; what the receiver sees. */
kernel void finish(global double *vx, global double *vy, global double *vz, global double *seismogram, double force_x,
                   double force_y, int step, int planes, int offset) {
    CELL
    size_t at = HERE;
    if (level == SOURCE_Z && j == SOURCE_Y && i == SOURCE_X) {
        vx[at] += force_x * DT / RHO;
        vy[at] += force_y * DT / RHO;
    }
    if (i == 1 || i == NX || j == 1 || j == NY || level == 1 || level == NZ) {
        vx[at] = 0.0;
        vy[at] = 0.0;
        vz[at] = 0.0;
    }
    if (level == SOURCE_Z && j == RECEIVER_Y && i == RECEIVER_X) {
        seismogram[2 * step] = vx[at];
        seismogram[2 * step + 1] = vy[at];
    }
}
