/* NAS SP (RNR-94-007, section 3.4): the factors along x, y and z are diagonal, each of scalar pentadiagonal systems. */

#define BT 0.70710678118654757 /* sqrt(0.5) */

kernel void derive(global const double *u, global double *us, global double *vs, global double *ws, global double *qs,
                   global double *rho_i, global double *square, global double *speed) {
    DERIVE_SCALARS
    speed[cell] = sqrt(C1 * C2 * inverse * (u[AT(4, cell)] - kinetic));
}

kernel void txinvr(global double *rhs, global const double *us, global const double *vs, global const double *ws,
                   global const double *qs, global const double *rho_i, global const double *speed) {
    INSIDE
    double ru1 = rho_i[cell], uu = us[cell], vv = vs[cell], ww = ws[cell], ac = speed[cell];
    double r1 = rhs[AT(0, cell)], r2 = rhs[AT(1, cell)], r3 = rhs[AT(2, cell)], r4 = rhs[AT(3, cell)];
    double t1 = C2 / (ac * ac) * (qs[cell] * r1 - uu * r2 - vv * r3 - ww * r4 + rhs[AT(4, cell)]);
    double t2 = BT * ru1 * (uu * r1 - r2), t3 = BT * ru1 * ac * t1;
    rhs[AT(0, cell)] = r1 - t1;
    rhs[AT(1, cell)] = -ru1 * (ww * r1 - r4);
    rhs[AT(2, cell)] = ru1 * (vv * r1 - r3);
    rhs[AT(3, cell)] = -t2 + t3;
    rhs[AT(4, cell)] = t2 + t3;
}

kernel void ninvr(global double *rhs) {
    INSIDE
    double r1 = rhs[AT(0, cell)], r2 = rhs[AT(1, cell)], r3 = rhs[AT(2, cell)], r4 = rhs[AT(3, cell)];
    double r5 = rhs[AT(4, cell)], t1 = BT * r3, t2 = 0.5 * (r4 + r5);
    rhs[AT(0, cell)] = -r2;
    rhs[AT(1, cell)] = r1;
    rhs[AT(2, cell)] = BT * (r4 - r5);
    rhs[AT(3, cell)] = -t1 + t2;
    rhs[AT(4, cell)] = t1 + t2;
}

kernel void pinvr(global double *rhs) {
    INSIDE
    double r1 = rhs[AT(0, cell)], r2 = rhs[AT(1, cell)], r3 = rhs[AT(2, cell)], r4 = rhs[AT(3, cell)];
    double r5 = rhs[AT(4, cell)], t1 = BT * r1, t2 = 0.5 * (r4 + r5);
    rhs[AT(0, cell)] = BT * (r4 - r5);
    rhs[AT(1, cell)] = -r3;
    rhs[AT(2, cell)] = r2;
    rhs[AT(3, cell)] = -t1 + t2;
    rhs[AT(4, cell)] = t1 + t2;
}

kernel void tzetar(global const double *u, global double *rhs, global const double *us, global const double *vs,
                   global const double *ws, global const double *qs, global const double *speed) {
    INSIDE
    double x = us[cell], y = vs[cell], z = ws[cell], ac = speed[cell], density = u[AT(0, cell)];
    double r1 = rhs[AT(0, cell)], r2 = rhs[AT(1, cell)], r3 = rhs[AT(2, cell)], r4 = rhs[AT(3, cell)];
    double r5 = rhs[AT(4, cell)], bt = BT * density, t1 = bt / ac * (r4 + r5), t2 = r3 + t1, t3 = bt * (r4 - r5);
    rhs[AT(0, cell)] = t2;
    rhs[AT(1, cell)] = -density * r2 + x * t2;
    rhs[AT(2, cell)] = density * r1 + y * t2;
    rhs[AT(3, cell)] = z * t2 + t3;
    rhs[AT(4, cell)] = density * (-x * r2 + y * r1) + qs[cell] * t2 + 2.5 * ac * ac * t1 + z * t3;
}

/* The spectral radius that stands for viscosity on the diagonal. */
static double radius(global const double *rho_i, size_t cell, double d) {
    double viscous = C3C4 * rho_i[cell];
    return fmax(fmax(d + CON43 * viscous, d + C1C5 * viscous), fmax(d + viscous, d));
}

/* Where coefficients of a cell lie; for lines along x, work-items of neighbouring lines are to touch neighbours. */
#if TOGETHER
#define OFFSET_X(i, j, k) CELL(i, j, k)
#else
#define OFFSET_X(i, j, k) (((size_t)(k) * PX + (i)) * PY + (j))
#endif

/* The three systems of a cell, number `at` of `n` on its line: of the flow's speed, and of both sound waves. */
static void set_lines(global double *lhs, global double *lhsp, global double *lhsm, global const double *speed_along,
                      global const double *rho_i, global const double *speed, size_t cell, size_t offset, size_t step,
                      int at, int n, double d) {
    double row[5] = {0.0, 0.0, 1.0, 0.0, 0.0}, slower = 0.0, faster = 0.0;
    if (at > 0 && at < n - 1) {
        double t1 = DT * (n - 1) * (n - 1), t2 = DT * 0.5 * (n - 1), c = DT * DISSIPATION;
        row[1] = -t2 * speed_along[cell - step] - t1 * radius(rho_i, cell - step, d);
        row[2] = 1.0 + 2.0 * t1 * radius(rho_i, cell, d);
        row[3] = t2 * speed_along[cell + step] - t1 * radius(rho_i, cell + step, d);
        row[2] += at == 1 || at == n - 2 ? 5.0 * c : 6.0 * c;
        if (at > 1) row[1] -= 4.0 * c;
        if (at < n - 2) row[3] -= 4.0 * c;
        if (at > 2) row[0] += c;
        if (at < n - 3) row[4] += c;
        slower = t2 * speed[cell - step];
        faster = t2 * speed[cell + step];
    }
    for (int m = 0; m < 5; m++) {
        lhs[AT(m, offset)] = row[m];
        lhsp[AT(m, offset)] = row[m] + (m == 1 ? -slower : m == 3 ? faster : 0.0);
        lhsm[AT(m, offset)] = row[m] + (m == 1 ? slower : m == 3 ? -faster : 0.0);
    }
}

#define LINES (global double *lhs, global double *lhsp, global double *lhsm, global const double *along,              \
               global const double *rho_i, global const double *speed)

kernel void x_lines LINES {
    WHERE
    if (i >= NX || j < 1 || k < 1 || j > NY - 2 || k > NZ - 2) return;
    set_lines(lhs, lhsp, lhsm, along, rho_i, speed, CELL(i, j, k), OFFSET_X(i, j, k), 1, i, NX, 0.75);
}

kernel void y_lines LINES {
    WHERE
    if (j >= NY || i < 1 || k < 1 || i > NX - 2 || k > NZ - 2) return;
    set_lines(lhs, lhsp, lhsm, along, rho_i, speed, CELL(i, j, k), CELL(i, j, k), PX, j, NY, 0.75);
}

kernel void z_lines LINES {
    WHERE
    if (k >= NZ || i < 1 || j < 1 || i > NX - 2 || j > NY - 2) return;
    set_lines(lhs, lhsp, lhsm, along, rho_i, speed, CELL(i, j, k), CELL(i, j, k), (size_t)PX * PY, k, NZ, 1.0);
}

/* Thomas' algorithm for a pentadiagonal system and `count` right-hand sides from component `first` on. */
static void solve_line(global double *lhs, global double *rhs, size_t cell, size_t step, size_t offset, size_t stride,
                       int n, int first, const int count) {
    double c2 = lhs[AT(2, offset)], c3 = lhs[AT(3, offset)], c4 = lhs[AT(4, offset)], c[3];
    size_t p1 = offset + stride;
    double d1 = lhs[AT(1, p1)], d2 = lhs[AT(2, p1)], d3 = lhs[AT(3, p1)], d4 = lhs[AT(4, p1)], d[3];
    for (int m = 0; m < count; m++) {
        c[m] = rhs[AT(first + m, cell)];
        d[m] = rhs[AT(first + m, cell + step)];
    }
    for (int at = 0; at < n - 1; at++, cell += step, offset += stride) {
        double inverse = 1.0 / c2;
        c3 *= inverse;
        c4 *= inverse;
        lhs[AT(3, offset)] = c3;
        lhs[AT(4, offset)] = c4;
        for (int m = 0; m < count; m++) {
            c[m] *= inverse;
            rhs[AT(first + m, cell)] = c[m];
            d[m] -= d1 * c[m];
        }
        d2 -= d1 * c3;
        d3 -= d1 * c4;
        double e1 = 0.0, e2 = 0.0, e3 = 0.0, e4 = 0.0, e[3] = {0.0, 0.0, 0.0};
        if (at < n - 2) {
            size_t p2 = offset + 2 * stride;
            double e0 = lhs[AT(0, p2)];
            e1 = lhs[AT(1, p2)] - e0 * c3;
            e2 = lhs[AT(2, p2)] - e0 * c4;
            e3 = lhs[AT(3, p2)];
            e4 = lhs[AT(4, p2)];
            for (int m = 0; m < count; m++) e[m] = rhs[AT(first + m, cell + 2 * step)] - e0 * c[m];
        }
        c2 = d2, c3 = d3, c4 = d4;
        d1 = e1, d2 = e2, d3 = e3, d4 = e4;
        for (int m = 0; m < count; m++) c[m] = d[m], d[m] = e[m];
    }
    for (int m = 0; m < count; m++) {
        c[m] /= c2;
        d[m] = 0.0;
        rhs[AT(first + m, cell)] = c[m];
    }
    for (int at = n - 2; at >= 0; at--) {
        cell -= step;
        offset -= stride;
        c3 = lhs[AT(3, offset)];
        c4 = lhs[AT(4, offset)];
        for (int m = 0; m < count; m++) {
            double value = rhs[AT(first + m, cell)] - c3 * c[m] - c4 * d[m];
            rhs[AT(first + m, cell)] = value;
            d[m] = c[m];
            c[m] = value;
        }
    }
}

#define SOLVE(step, stride, n)                                                                                        \
    solve_line(lhs, rhs, cell, step, offset, stride, n, 0, 3);                                                         \
    solve_line(lhsp, rhs, cell, step, offset, stride, n, 3, 1);                                                        \
    solve_line(lhsm, rhs, cell, step, offset, stride, n, 4, 1);

kernel void x_solve(global double *rhs, global double *lhs, global double *lhsp, global double *lhsm) {
    int j = get_global_id(0) + 1, k = get_global_id(1) + 1;
    if (j > NY - 2 || k > NZ - 2) return;
    size_t cell = CELL(0, j, k), offset = OFFSET_X(0, j, k);
    SOLVE(1, OFFSET_X(1, 0, 0), NX)
}

kernel void y_solve(global double *rhs, global double *lhs, global double *lhsp, global double *lhsm) {
    int i = get_global_id(0) + 1, k = get_global_id(1) + 1;
    if (i > NX - 2 || k > NZ - 2) return;
    size_t cell = CELL(i, 0, k), offset = cell;
    SOLVE(PX, PX, NY)
}

kernel void z_solve(global double *rhs, global double *lhs, global double *lhsp, global double *lhsm) {
    int i = get_global_id(0) + 1, j = get_global_id(1) + 1;
    if (i > NX - 2 || j > NY - 2) return;
    size_t cell = CELL(i, j, 0), offset = cell;
    SOLVE((size_t)PX * PY, (size_t)PX * PY, NZ)
}
