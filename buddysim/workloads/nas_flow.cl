/* The right-hand side of NAS BT and SP (RNR-94-007, section 3). Cells have the row pitch PX and the plane pitch PX PY. */

#define CELLS ((size_t)PX * PY * NZ)
#define CELL(i, j, k) (((size_t)(k) * PY + (j)) * PX + (i))
#if TOGETHER
#define AT(m, cell) ((cell) * 5 + (m))
#else
#define AT(m, cell) ((m) * CELLS + (cell))
#endif

#define C1 1.4
#define C2 0.4
#define C1C5 (1.4 * 1.4)
#define C3C4 0.1
#define CON43 (4.0 / 3.0)
#define DISSIPATION 0.25

#define WHERE int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
#define INSIDE                                                                                                        \
    WHERE                                                                                                             \
    if (i < 1 || j < 1 || k < 1 || i > NX - 2 || j > NY - 2 || k > NZ - 2) return;                                    \
    size_t cell = CELL(i, j, k);

/* What the right-hand side takes of a cell in addition to its components: the kernel's arguments have these names. */
#define DERIVE_SCALARS                                                                                                \
    WHERE                                                                                                             \
    if (i >= NX || j >= NY || k >= NZ) return;                                                                        \
    size_t cell = CELL(i, j, k);                                                                                      \
    double u1 = u[AT(1, cell)], u2 = u[AT(2, cell)], u3 = u[AT(3, cell)], inverse = 1.0 / u[AT(0, cell)];             \
    double kinetic = 0.5 * (u1 * u1 + u2 * u2 + u3 * u3) * inverse;                                                   \
    rho_i[cell] = inverse;                                                                                            \
    us[cell] = u1 * inverse;                                                                                          \
    vs[cell] = u2 * inverse;                                                                                          \
    ws[cell] = u3 * inverse;                                                                                          \
    square[cell] = kinetic;                                                                                           \
    qs[cell] = kinetic * inverse;

static double second(global const double *a, size_t cell, size_t step) {
    return a[cell + step] - 2.0 * a[cell] + a[cell - step];
}

/* The part of one direction: v is the component of the momentum along it, `step` leads to the next cell, the cell is
 * number `at` of `n`, and dissipation of second order has the coefficient d. */
static void add_flux(global const double *u, global const double *us, global const double *vs, global const double *ws,
                     global const double *qs, global const double *rho_i, global const double *square, double *rhs,
                     size_t cell, int v, size_t step, int at, int n, double d) {
    const double t1 = (double)(n - 1) * (n - 1), t2 = 0.5 * (n - 1), viscous = C3C4 * t1;
    global const double *speed = v == 1 ? us : v == 2 ? vs : ws;
    size_t next = cell + step, last = cell - step;
    double up = speed[next], here = speed[cell], um = speed[last];
    double u0[5], un[5], ul[5], dissipation[5];
    for (int m = 0; m < 5; m++) {
        u0[m] = u[AT(m, cell)];
        un[m] = u[AT(m, next)];
        ul[m] = u[AT(m, last)];
        dissipation[m] = (at == 1 || at == n - 2 ? 5.0 : 6.0) * u0[m];
        if (at > 1) dissipation[m] -= 4.0 * ul[m];
        if (at < n - 2) dissipation[m] -= 4.0 * un[m];
        if (at > 2) dissipation[m] += u[AT(m, last - step)];
        if (at < n - 3) dissipation[m] += u[AT(m, next + step)];
    }
    double square_n = square[next], square_l = square[last];
    for (int m = 0; m < 5; m++)
        rhs[m] += d * t1 * (un[m] - 2.0 * u0[m] + ul[m]) - DISSIPATION * dissipation[m];
    rhs[0] -= t2 * (un[v] - ul[v]);
    for (int m = 1; m < 4; m++) {
        global const double *of = m == 1 ? us : m == 2 ? vs : ws;
        rhs[m] += (m == v ? viscous * CON43 : viscous) * second(of, cell, step) - t2 * (un[m] * up - ul[m] * um);
    }
    rhs[v] -= t2 * C2 * (un[4] - square_n - ul[4] + square_l);
    rhs[4] += viscous * (1.0 - C1C5) * second(qs, cell, step) +
              viscous * (1.0 / 6.0) * (up * up - 2.0 * here * here + um * um) +
              viscous * C1C5 * (un[4] * rho_i[next] - 2.0 * u0[4] * rho_i[cell] + ul[4] * rho_i[last]) -
              t2 * ((C1 * un[4] - C2 * square_n) * up - (C1 * ul[4] - C2 * square_l) * um);
}

kernel void rhs_x(global const double *u, global double *rhs, global const double *forcing, global const double *us,
                  global const double *vs, global const double *ws, global const double *qs,
                  global const double *rho_i, global const double *square) {
    WHERE
    if (i >= NX || j >= NY || k >= NZ) return;
    size_t cell = CELL(i, j, k);
    double sum[5];
    for (int m = 0; m < 5; m++) sum[m] = forcing[AT(m, cell)];
    if (i > 0 && j > 0 && k > 0 && i < NX - 1 && j < NY - 1 && k < NZ - 1)
        add_flux(u, us, vs, ws, qs, rho_i, square, sum, cell, 1, 1, i, NX, 0.75);
    for (int m = 0; m < 5; m++) rhs[AT(m, cell)] = sum[m];
}

kernel void rhs_y(global const double *u, global double *rhs, global const double *us, global const double *vs,
                  global const double *ws, global const double *qs, global const double *rho_i,
                  global const double *square) {
    INSIDE
    double sum[5];
    for (int m = 0; m < 5; m++) sum[m] = rhs[AT(m, cell)];
    add_flux(u, us, vs, ws, qs, rho_i, square, sum, cell, 2, PX, j, NY, 0.75);
    for (int m = 0; m < 5; m++) rhs[AT(m, cell)] = sum[m];
}

kernel void rhs_z(global const double *u, global double *rhs, global const double *us, global const double *vs,
                  global const double *ws, global const double *qs, global const double *rho_i,
                  global const double *square) {
    INSIDE
    double sum[5];
    for (int m = 0; m < 5; m++) sum[m] = rhs[AT(m, cell)];
    add_flux(u, us, vs, ws, qs, rho_i, square, sum, cell, 3, (size_t)PX * PY, k, NZ, 1.0);
    for (int m = 0; m < 5; m++) rhs[AT(m, cell)] = sum[m] * DT;
}

kernel void add(global double *u, global const double *rhs) {
    INSIDE
    for (int m = 0; m < 5; m++) u[AT(m, cell)] += rhs[AT(m, cell)];
}
