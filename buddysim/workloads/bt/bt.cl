/* NAS BT (RNR-94-007, section 3.3): the factors along x, y and z are of block tridiagonal systems, blocks of 5 x 5. As
 * in ports to GPUs, Jacobians and blocks of all cells are kept: B[n][m] of column n, row m; of all cells together. */

kernel void derive(global const double *u, global double *us, global double *vs, global double *ws, global double *qs,
                   global double *rho_i, global double *square) {
    DERIVE_SCALARS
}

#define C1345 (C1C5 * C3C4)
#define BLOCK(n, m, offset) (((n) * 5 + (m)) * CELLS + (offset))
#define SUB 0 /* blocks of a row: left of the diagonal, on it, right of it */
#define DIAGONAL 1
#define SUPER 2
#define ROW(block, n, m, offset) (((size_t)(block) * 25 + (n) * 5 + (m)) * CELLS + (offset))

/* For lines along x, work-items of neighbouring lines are to touch neighbours. */
#define OFFSET_X(i, j, k) (((size_t)(k) * PX + (i)) * PY + (j))

/* Jacobians of the inviscid flux (fjac) and of the viscous one (njac) along v. */
static void set_jacobians(global const double *u, global const double *qs, global const double *rho_i,
                          global const double *square, global double *fjac, global double *njac, size_t cell,
                          size_t offset, const int v) {
    double tmp1 = rho_i[cell], tmp2 = tmp1 * tmp1, tmp3 = tmp1 * tmp2, q = qs[cell], w[5];
    for (int m = 0; m < 5; m++) w[m] = u[AT(m, cell)];
    for (int n = 0; n < 5; n++) fjac[BLOCK(n, 0, offset)] = n == v ? 1.0 : 0.0;
    for (int m = 1; m < 4; m++) {
        fjac[BLOCK(0, m, offset)] = -(w[m] * w[v]) * tmp2 + (m == v ? C2 * q : 0.0);
        for (int n = 1; n < 4; n++) {
            double value = m == v ? (n == v ? (2.0 - C2) * w[v] * tmp1 : -C2 * (w[n] * tmp1))
                                  : (n == v ? w[m] * tmp1 : n == m ? w[v] * tmp1 : 0.0);
            fjac[BLOCK(n, m, offset)] = value;
        }
        fjac[BLOCK(4, m, offset)] = m == v ? C2 : 0.0;
    }
    fjac[BLOCK(0, 4, offset)] = (C2 * 2.0 * square[cell] - C1 * w[4]) * (w[v] * tmp2);
    for (int n = 1; n < 4; n++)
        fjac[BLOCK(n, 4, offset)] = n == v ? C1 * w[4] * tmp1 - C2 * (w[v] * w[v] * tmp2 + q) : -C2 * (w[n] * w[v]) * tmp2;
    fjac[BLOCK(4, 4, offset)] = C1 * (w[v] * tmp1);

    for (int n = 0; n < 5; n++) njac[BLOCK(n, 0, offset)] = 0.0;
    double energy = -C1345 * tmp2 * w[4];
    for (int m = 1; m < 4; m++) {
        double viscous = m == v ? CON43 * C3C4 : C3C4;
        for (int n = 1; n < 5; n++) njac[BLOCK(n, m, offset)] = n == m ? viscous * tmp1 : 0.0;
        njac[BLOCK(0, m, offset)] = -viscous * tmp2 * w[m];
        njac[BLOCK(m, 4, offset)] = (viscous - C1345) * tmp2 * w[m];
        energy -= (viscous - C1345) * tmp3 * (w[m] * w[m]);
    }
    njac[BLOCK(0, 4, offset)] = energy;
    njac[BLOCK(4, 4, offset)] = C1345 * tmp1;
}

/* The blocks of a cell, number `at` of `n_cells` on its line, from the Jacobians of its neighbours and its own. */
static void set_blocks(global const double *fjac, global const double *njac, global double *lhs, size_t offset,
                       size_t stride, int at, int n_cells, double d) {
    int end = at == 0 || at == n_cells - 1;
    double t1 = DT * (n_cells - 1) * (n_cells - 1), t2 = DT * 0.5 * (n_cells - 1);
    for (int n = 0; n < 5; n++) {
        for (int m = 0; m < 5; m++) {
            double one = n == m ? 1.0 : 0.0, sub = 0.0, diagonal = one, super = 0.0;
            if (!end) {
                size_t last = BLOCK(n, m, offset - stride), next = BLOCK(n, m, offset + stride);
                sub = -t2 * fjac[last] - t1 * njac[last] - t1 * d * one;
                diagonal = one + 2.0 * t1 * njac[BLOCK(n, m, offset)] + 2.0 * t1 * d * one;
                super = t2 * fjac[next] - t1 * njac[next] - t1 * d * one;
            }
            lhs[ROW(SUB, n, m, offset)] = sub;
            lhs[ROW(DIAGONAL, n, m, offset)] = diagonal;
            lhs[ROW(SUPER, n, m, offset)] = super;
        }
    }
}

/* Block elimination along a line, then back. */
static void solve_line(global double *lhs, global double *rhs, size_t cell, size_t step, size_t offset, size_t stride,
                       int n_cells) {
    double c[25], r[5];
    for (int at = 0; at < n_cells; at++, cell += step, offset += stride) {
        double b[25], x[5];
        for (int e = 0; e < 25; e++) b[e] = lhs[ROW(DIAGONAL, 0, e, offset)];
        for (int m = 0; m < 5; m++) x[m] = rhs[AT(m, cell)];
        if (at > 0) {
            for (int p = 0; p < 5; p++) {
                for (int m = 0; m < 5; m++) {
                    double a = lhs[ROW(SUB, p, m, offset)];
                    x[m] -= a * r[p];
                    for (int n = 0; n < 5; n++) b[n * 5 + m] -= a * c[n * 5 + p];
                }
            }
        }
        for (int e = 0; e < 25; e++) c[e] = lhs[ROW(SUPER, 0, e, offset)];
        for (int p = 0; p < 5; p++) {
            double pivot = 1.0 / b[p * 5 + p];
            for (int n = p + 1; n < 5; n++) b[n * 5 + p] *= pivot;
            for (int n = 0; n < 5; n++) c[n * 5 + p] *= pivot;
            x[p] *= pivot;
            for (int q = 0; q < 5; q++) {
                if (q == p) continue;
                double factor = b[p * 5 + q];
                for (int n = p + 1; n < 5; n++) b[n * 5 + q] -= factor * b[n * 5 + p];
                for (int n = 0; n < 5; n++) c[n * 5 + q] -= factor * c[n * 5 + p];
                x[q] -= factor * x[p];
            }
        }
        for (int e = 0; e < 25; e++) lhs[ROW(SUPER, 0, e, offset)] = c[e];
        for (int m = 0; m < 5; m++) {
            rhs[AT(m, cell)] = x[m];
            r[m] = x[m];
        }
    }
    cell -= step;
    offset -= stride;
    for (int at = n_cells - 2; at >= 0; at--) {
        double x[5];
        cell -= step;
        offset -= stride;
        for (int m = 0; m < 5; m++) x[m] = rhs[AT(m, cell)];
        for (int n = 0; n < 5; n++)
            for (int m = 0; m < 5; m++) x[m] -= lhs[ROW(SUPER, n, m, offset)] * r[n];
        for (int m = 0; m < 5; m++) {
            rhs[AT(m, cell)] = x[m];
            r[m] = x[m];
        }
    }
}

#define JACOBIANS (global const double *u, global const double *qs, global const double *rho_i,                       \
                   global const double *square, global double *fjac, global double *njac)
#define BLOCKS (global const double *fjac, global const double *njac, global double *lhs)
#define TURNED int j = get_global_id(0), i = get_global_id(1), k = get_global_id(2);
#define ON_X_LINES if (i >= NX || j < 1 || k < 1 || j > NY - 2 || k > NZ - 2) return;
#define ON_Y_LINES if (j >= NY || i < 1 || k < 1 || i > NX - 2 || k > NZ - 2) return;
#define ON_Z_LINES if (k >= NZ || i < 1 || j < 1 || i > NX - 2 || j > NY - 2) return;

kernel void x_jacobians JACOBIANS {
    TURNED ON_X_LINES
    set_jacobians(u, qs, rho_i, square, fjac, njac, CELL(i, j, k), OFFSET_X(i, j, k), 1);
}

kernel void y_jacobians JACOBIANS {
    WHERE ON_Y_LINES
    set_jacobians(u, qs, rho_i, square, fjac, njac, CELL(i, j, k), CELL(i, j, k), 2);
}

kernel void z_jacobians JACOBIANS {
    WHERE ON_Z_LINES
    set_jacobians(u, qs, rho_i, square, fjac, njac, CELL(i, j, k), CELL(i, j, k), 3);
}

kernel void x_blocks BLOCKS {
    TURNED ON_X_LINES
    set_blocks(fjac, njac, lhs, OFFSET_X(i, j, k), OFFSET_X(1, 0, 0), i, NX, 0.75);
}

kernel void y_blocks BLOCKS {
    WHERE ON_Y_LINES
    set_blocks(fjac, njac, lhs, CELL(i, j, k), PX, j, NY, 0.75);
}

kernel void z_blocks BLOCKS {
    WHERE ON_Z_LINES
    set_blocks(fjac, njac, lhs, CELL(i, j, k), (size_t)PX * PY, k, NZ, 1.0);
}

kernel void x_solve(global double *rhs, global double *lhs) {
    int j = get_global_id(0) + 1, k = get_global_id(1) + 1;
    if (j > NY - 2 || k > NZ - 2) return;
    solve_line(lhs, rhs, CELL(0, j, k), 1, OFFSET_X(0, j, k), OFFSET_X(1, 0, 0), NX);
}

kernel void y_solve(global double *rhs, global double *lhs) {
    int i = get_global_id(0) + 1, k = get_global_id(1) + 1;
    if (i > NX - 2 || k > NZ - 2) return;
    solve_line(lhs, rhs, CELL(i, 0, k), PX, CELL(i, 0, k), PX, NY);
}

kernel void z_solve(global double *rhs, global double *lhs) {
    int i = get_global_id(0) + 1, j = get_global_id(1) + 1;
    if (i > NX - 2 || j > NY - 2) return;
    solve_line(lhs, rhs, CELL(i, j, 0), (size_t)PX * PY, CELL(i, j, 0), (size_t)PX * PY, NZ);
}
