/* Large-eddy simulation of the atmospheric boundary layer, after PALM (Raasch and Schroeter 2001; Maronga et al. 2015):
 * the Boussinesq equations on a staggered grid, advection of fifth order (Wicker and Skamarock 2002), Deardorff's
 * turbulence closure, Williamson's Runge-Kutta steps, and a pressure that takes out the divergence by Fourier transforms
 * along x and y. Columns are contiguous; u lies on a cell's lower face along x, v along y, w on its upper one. */

#define GHOSTS 3
#define LAYERS (NZ + 2)
#define AT(k, j, i) (((size_t)((i) + GHOSTS) * (NY + 2 * GHOSTS) + ((j) + GHOSTS)) * LAYERS + (k))
#define SX ((size_t)(NY + 2 * GHOSTS) * LAYERS)
#define SY ((size_t)LAYERS)
#define CELL                                                                                                          \
    int k = get_global_id(0) + 1, j = get_global_id(1), i = get_global_id(2);                                         \
    if (k > NZ || j >= NY || i >= NX) return;                                                                         \
    size_t c = AT(k, j, i);

#define GRAVITY 9.81
#define KAPPA 0.4
#define REFERENCE 300.0
#define DELTA cbrt(DX * DX * DZ)

/* The flux through the face between the cells c - s and c. Next to the ground and the top of second order. */
static double advected(global const double *q, size_t c, size_t s, double speed, int wide) {
    double here = q[c], last = q[c - s];
    if (!wide) return speed * 0.5 * (here + last);
    double next = q[c + s], before = q[c - 2 * s], far = q[c + 2 * s], early = q[c - 3 * s];
    return (speed * (37.0 * (here + last) - 8.0 * (next + before) + (far + early)) -
            fabs(speed) * (10.0 * (here - last) - 5.0 * (next - before) + (far - early))) *
           (1.0 / 60.0);
}

/* Whether the stencil of the face between layers k - 1 and k lies within first and NZ + 1. */
#define WIDE(k, first) ((k) - 3 >= (first) && (k) + 2 <= NZ + 1)
#define MEAN2(q, s) (0.5 * (q[c] + q[c - (s)]))
#define MEAN4(q, at, s, t) (0.25 * (q[at] + q[(at) - (s)] + q[(at) + (t)] + q[(at) - (s) + (t)]))

/* The drag of the ground on a component of the wind in the lowest layer: the logarithmic law. */
static double drag(double speed, double across) {
    double factor = KAPPA / log(0.5 * DZ / ROUGHNESS);
    return -factor * factor * sqrt(speed * speed + across * across) * speed;
}

kernel void tendency_u(global const double *u, global const double *v, global const double *w,
                       global const double *km, global double *tend, global double *usws) {
    CELL
    double advection =
        (advected(u, c + SX, SX, 0.5 * (u[c] + u[c + SX]), 1) - advected(u, c, SX, 0.5 * (u[c - SX] + u[c]), 1)) / DX +
        (advected(u, c + SY, SY, 0.5 * (v[c + SY] + v[c + SY - SX]), 1) -
         advected(u, c, SY, 0.5 * (v[c] + v[c - SX]), 1)) / DX +
        (advected(u, c + 1, 1, 0.5 * (w[c] + w[c - SX]), WIDE(k + 1, 1)) -
         advected(u, c, 1, 0.5 * (w[c - 1] + w[c - 1 - SX]), WIDE(k, 1))) / DZ;
    double along = 2.0 * (km[c] * (u[c + SX] - u[c]) - km[c - SX] * (u[c] - u[c - SX])) / (DX * DX);
    double right = MEAN4(km, c, SX, SY) * (u[c + SY] - u[c] + v[c + SY] - v[c + SY - SX]) / DX;
    double left = MEAN4(km, c - SY, SX, SY) * (u[c] - u[c - SY] + v[c] - v[c - SX]) / DX;
    double above = k == NZ ? 0.0 : MEAN4(km, c, SX, 1) * ((u[c + 1] - u[c]) / DZ + (w[c] - w[c - SX]) / DX);
    double below;
    if (k == 1) {
        double flux = drag(u[c], MEAN4(v, c, SX, SY));
        usws[i * NY + j] = flux;
        below = -flux;
    } else {
        below = MEAN4(km, c - 1, SX, 1) * ((u[c] - u[c - 1]) / DZ + (w[c - 1] - w[c - 1 - SX]) / DX);
    }
    tend[c] = -advection + along + (right - left) / DX + (above - below) / DZ;
}

kernel void tendency_v(global const double *u, global const double *v, global const double *w,
                       global const double *km, global double *tend) {
    CELL
    double advection =
        (advected(v, c + SX, SX, 0.5 * (u[c + SX] + u[c + SX - SY]), 1) -
         advected(v, c, SX, 0.5 * (u[c] + u[c - SY]), 1)) / DX +
        (advected(v, c + SY, SY, 0.5 * (v[c] + v[c + SY]), 1) - advected(v, c, SY, 0.5 * (v[c - SY] + v[c]), 1)) / DX +
        (advected(v, c + 1, 1, 0.5 * (w[c] + w[c - SY]), WIDE(k + 1, 1)) -
         advected(v, c, 1, 0.5 * (w[c - 1] + w[c - 1 - SY]), WIDE(k, 1))) / DZ;
    double along = 2.0 * (km[c] * (v[c + SY] - v[c]) - km[c - SY] * (v[c] - v[c - SY])) / (DX * DX);
    double right = MEAN4(km, c, SY, SX) * (v[c + SX] - v[c] + u[c + SX] - u[c + SX - SY]) / DX;
    double left = MEAN4(km, c - SX, SY, SX) * (v[c] - v[c - SX] + u[c] - u[c - SY]) / DX;
    double above = k == NZ ? 0.0 : MEAN4(km, c, SY, 1) * ((v[c + 1] - v[c]) / DZ + (w[c] - w[c - SY]) / DX);
    double below = k == 1 ? -drag(v[c], MEAN4(u, c, SY, SX))
                          : MEAN4(km, c - 1, SY, 1) * ((v[c] - v[c - 1]) / DZ + (w[c - 1] - w[c - 1 - SY]) / DX);
    tend[c] = -advection + along + (right - left) / DX + (above - below) / DZ;
}

kernel void tendency_w(global const double *u, global const double *v, global const double *w,
                       global const double *pt, global const double *km, global double *tend) {
    CELL
    if (k == NZ) {
        tend[c] = 0.0;
        return;
    }
    double advection =
        (advected(w, c + SX, SX, 0.5 * (u[c + SX] + u[c + SX + 1]), 1) -
         advected(w, c, SX, 0.5 * (u[c] + u[c + 1]), 1)) / DX +
        (advected(w, c + SY, SY, 0.5 * (v[c + SY] + v[c + SY + 1]), 1) -
         advected(w, c, SY, 0.5 * (v[c] + v[c + 1]), 1)) / DX +
        (advected(w, c + 1, 1, 0.5 * (w[c] + w[c + 1]), WIDE(k + 1, 0)) -
         advected(w, c, 1, 0.5 * (w[c - 1] + w[c]), WIDE(k, 0))) / DZ;
    double along = 2.0 * (km[c + 1] * (w[c + 1] - w[c]) - km[c] * (w[c] - w[c - 1])) / (DZ * DZ);
    double east = MEAN4(km, c + SX, SX, 1) * ((w[c + SX] - w[c]) / DX + (u[c + SX + 1] - u[c + SX]) / DZ);
    double west = MEAN4(km, c, SX, 1) * ((w[c] - w[c - SX]) / DX + (u[c + 1] - u[c]) / DZ);
    double north = MEAN4(km, c + SY, SY, 1) * ((w[c + SY] - w[c]) / DX + (v[c + SY + 1] - v[c + SY]) / DZ);
    double south = MEAN4(km, c, SY, 1) * ((w[c] - w[c - SY]) / DX + (v[c + 1] - v[c]) / DZ);
    double buoyancy = GRAVITY / REFERENCE * (0.5 * (pt[c] + pt[c + 1]) - REFERENCE);
    tend[c] = -advection + along + (east - west + north - south) / DX + buoyancy;
}

static double scalar_advection(global const double *q, global const double *u, global const double *v,
                               global const double *w, size_t c, int k) {
    return (advected(q, c + SX, SX, u[c + SX], 1) - advected(q, c, SX, u[c], 1)) / DX +
           (advected(q, c + SY, SY, v[c + SY], 1) - advected(q, c, SY, v[c], 1)) / DX +
           (advected(q, c + 1, 1, w[c], WIDE(k + 1, 1)) - advected(q, c, 1, w[c - 1], WIDE(k, 1))) / DZ;
}

/* Diffusion with the flux `below` into the lowest layer; none through the top. */
static double scalar_diffusion(global const double *q, global const double *kh, size_t c, int k, double below) {
    double sides = 0.5 * ((kh[c + SX] + kh[c]) * (q[c + SX] - q[c]) - (kh[c] + kh[c - SX]) * (q[c] - q[c - SX]) +
                          (kh[c + SY] + kh[c]) * (q[c + SY] - q[c]) - (kh[c] + kh[c - SY]) * (q[c] - q[c - SY]));
    double above = k == NZ ? 0.0 : 0.5 * (kh[c + 1] + kh[c]) * (q[c + 1] - q[c]) / DZ;
    if (k > 1) below = -0.5 * (kh[c] + kh[c - 1]) * (q[c] - q[c - 1]) / DZ;
    return sides / (DX * DX) + (above + below) / DZ;
}

kernel void tendency_pt(global const double *u, global const double *v, global const double *w,
                        global const double *pt, global const double *kh, global double *tend) {
    CELL
    tend[c] = -scalar_advection(pt, u, v, w, c, k) + scalar_diffusion(pt, kh, c, k, HEAT_FLUX);
}

/* The mixing length: the grid's, or less where stratification is stable. */
static double mixing_length(double energy, double gradient) {
    double length = DELTA;
    if (gradient > 0.0) {
        double stable = 0.76 * sqrt(energy) / sqrt(GRAVITY / REFERENCE * gradient) + 1e-5;
        if (stable < length) length = stable;
    }
    return length;
}

#define GRADIENT(q) ((k == 1 ? q[c + 1] - q[c] : k == NZ ? q[c] - q[c - 1] : 0.5 * (q[c + 1] - q[c - 1])) / DZ)

kernel void tendency_e(global const double *u, global const double *v, global const double *w,
                       global const double *pt, global const double *e, global const double *km,
                       global const double *kh, global double *tend) {
    CELL
    double ux = (u[c + SX] - u[c]) / DX, vy = (v[c + SY] - v[c]) / DX, wz = (w[c] - w[c - 1]) / DZ;
    double uy = 0.25 * (u[c + SY] + u[c + SY + SX] - u[c - SY] - u[c - SY + SX]) / DX;
    double vx = 0.25 * (v[c + SX] + v[c + SX + SY] - v[c - SX] - v[c - SX + SY]) / DX;
    double wx = 0.25 * (w[c + SX] + w[c + SX - 1] - w[c - SX] - w[c - SX - 1]) / DX;
    double wy = 0.25 * (w[c + SY] + w[c + SY - 1] - w[c - SY] - w[c - SY - 1]) / DX;
    size_t up = k == NZ ? c : c + 1, down = k == 1 ? c : c - 1;
    double layers = (up - down) * DZ;
    double uz = 0.5 * (u[up] + u[up + SX] - u[down] - u[down + SX]) / layers;
    double vz = 0.5 * (v[up] + v[up + SY] - v[down] - v[down + SY]) / layers;
    double gradient = GRADIENT(pt), energy = e[c], length = mixing_length(energy, gradient);
    double shear = 2.0 * (ux * ux + vy * vy + wz * wz) + (uy + vx) * (uy + vx) + (uz + wx) * (uz + wx) +
                   (vz + wy) * (vz + wy);
    double dissipation = (0.19 + 0.74 * length / DELTA) * energy * sqrt(energy) / length;
    tend[c] = -scalar_advection(e, u, v, w, c, k) + 2.0 * scalar_diffusion(e, km, c, k, 0.0) + km[c] * shear -
              GRAVITY / REFERENCE * kh[c] * gradient - dissipation;
}

/* A Runge-Kutta stage of a variable; `tend_m` carries what the next stage needs of the last tendencies. */
kernel void advance_variable(global const double *q, global const double *tend, global double *tend_m,
                             global double *q_p, double now, double before, int stage, double least) {
    CELL
    double change = tend[c], previous = tend_m[c];
    q_p[c] = fmax(q[c] + now * change + before * previous, least);
    if (stage == 0) tend_m[c] = change;
    if (stage == 1) tend_m[c] = -9.5625 * change + 5.3125 * previous;
}

/* Ghost columns along both periodic directions, and the layers below the ground and above the top: `mirrored` copies
 * the next layer, otherwise they stay. */
kernel void exchange(global double *q, int mirrored) {
    int k = get_global_id(0), j = (int)get_global_id(1) - GHOSTS, i = (int)get_global_id(2) - GHOSTS;
    if (k >= LAYERS || j >= NY + GHOSTS || i >= NX + GHOSTS) return;
    int from_j = (j + NY) % NY, from_i = (i + NX) % NX, from_k = k;
    if (mirrored && k == 0) from_k = 1;
    if (mirrored && k == NZ + 1) from_k = NZ;
    if (from_j != j || from_i != i || from_k != k) q[AT(k, j, i)] = q[AT(from_k, from_j, from_i)];
}

kernel void diffusivities(global const double *pt, global const double *e, global double *km, global double *kh) {
    CELL
    double energy = e[c], length = mixing_length(energy, GRADIENT(pt)), momentum = 0.1 * length * sqrt(energy);
    km[c] = momentum;
    kh[c] = (1.0 + 2.0 * length / DELTA) * momentum;
}

/* Pressure. Spectra have no ghosts: columns, then j, then i. */
#define SPECTRUM(k, j, i) (((size_t)(i) * NY + (j)) * NZ + (k))

kernel void divergence(global const double *u, global const double *v, global const double *w, global double *d,
                       global double *real, global double *imaginary) {
    CELL
    double sum = (u[c + SX] - u[c]) / DX + (v[c + SY] - v[c]) / DX + (w[c] - w[c - 1]) / DZ;
    d[c] = sum;
    real[SPECTRUM(k - 1, j, i)] = sum;
    imaginary[SPECTRUM(k - 1, j, i)] = 0.0;
}

static int reversed(int value, int bits) {
    int result = 0;
    for (int bit = 0; bit < bits; bit++) result |= (value >> bit & 1) << (bits - 1 - bit);
    return result;
}

/* A Fourier transform of a line of 2^bits elements, `step` apart. */
static void transform(global double *real, global double *imaginary, size_t at, size_t step, int bits, double sign,
                      double scale, double2 *line) {
    int n = 1 << bits;
    for (int p = 0; p < n; p++) line[reversed(p, bits)] = (double2)(real[at + p * step], imaginary[at + p * step]);
    for (int length = 2; length <= n; length *= 2) {
        for (int q = 0; q < length / 2; q++) {
            double angle = sign * 2.0 * M_PI * q / length, cosine = cos(angle), sine = sin(angle);
            for (int start = q; start < n; start += length) {
                double2 a = line[start], b = line[start + length / 2];
                double2 turned = (double2)(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
                line[start] = a + turned;
                line[start + length / 2] = a - turned;
            }
        }
    }
    for (int p = 0; p < n; p++) {
        real[at + p * step] = line[p].x * scale;
        imaginary[at + p * step] = line[p].y * scale;
    }
}

kernel void transform_x(global double *real, global double *imaginary, double sign, double scale) {
    int k = get_global_id(0), j = get_global_id(1);
    if (k >= NZ || j >= NY) return;
    double2 line[NX];
    transform(real, imaginary, SPECTRUM(k, j, 0), (size_t)NY * NZ, LOG_NX, sign, scale, line);
}

kernel void transform_y(global double *real, global double *imaginary, double sign, double scale) {
    int k = get_global_id(0), i = get_global_id(1);
    if (k >= NZ || i >= NX) return;
    double2 line[NY];
    transform(real, imaginary, SPECTRUM(k, 0, i), NZ, LOG_NY, sign, scale, line);
}

/* A tridiagonal system along z for each pair of wave numbers; no flux through ground and top. */
kernel void columns(global double *real, global double *imaginary, global double *tri) {
    int j = get_global_id(0), i = get_global_id(1);
    if (j >= NY || i >= NX) return;
    double wave = (4.0 - 2.0 * cos(2.0 * M_PI * i / NX) - 2.0 * cos(2.0 * M_PI * j / NY)) / (DX * DX);
    double link = 1.0 / (DZ * DZ), re = 0.0, im = 0.0, upper = 0.0;
    for (int k = 0; k < NZ; k++) {
        size_t at = SPECTRUM(k, j, i);
        /* The mean of the pressure is free: for the mean column the first layer is tied to 0. */
        double links = (k > 0 || i + j == 0) + (k < NZ - 1);
        double below = k ? link : 0.0, pivot = 1.0 / (-links * link - wave - below * upper);
        upper = k < NZ - 1 ? link * pivot : 0.0;
        tri[at] = upper;
        re = (real[at] - below * re) * pivot;
        im = (imaginary[at] - below * im) * pivot;
        real[at] = re;
        imaginary[at] = im;
    }
    for (int k = NZ - 2; k >= 0; k--) {
        size_t at = SPECTRUM(k, j, i);
        re = real[at] - tri[at] * re;
        im = imaginary[at] - tri[at] * im;
        real[at] = re;
        imaginary[at] = im;
    }
}

kernel void set_pressure(global const double *real, global double *p) {
    CELL
    p[c] = real[SPECTRUM(k - 1, j, i)];
}

/* Takes the gradient of the pressure (times the stage's length) from the wind. */
kernel void correct(global double *u, global double *v, global double *w, global const double *p) {
    CELL
    double here = p[c];
    u[c] -= (here - p[c - SX]) / DX;
    v[c] -= (here - p[c - SY]) / DX;
    if (k < NZ) w[c] -= (p[c + 1] - here) / DZ;
}
