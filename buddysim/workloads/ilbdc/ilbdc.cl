/* D3Q19 lattice Boltzmann with two relaxation times (Ginzburg et al. 2008), over a list of the fluid cells: populations
 * by direction, then cell; where each of a cell's 18 moving populations goes is in a list. */

#define DIRECTIONS 19
#define LINKS 18
#define AT(direction) ((size_t)(direction) * CELLS + cell)

constant int along_x[LINKS] = {0, 0, 1, -1, 1, 1, -1, -1, 0, 0, 1, -1, 0, 0, 0, 0, -1, 1};
constant int along_y[LINKS] = {1, -1, 0, 0, 1, -1, 1, -1, 0, 1, 0, 0, -1, 0, -1, 1, 0, 0};
constant int along_z[LINKS] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
constant int opposite[LINKS] = {1, 0, 3, 2, 7, 6, 5, 4, 13, 14, 16, 17, 15, 8, 9, 12, 10, 11};

/* The list: to the neighbour, periodic along x and y; where that is solid, back into the cell (half-way bounce-back). */
kernel void connect(global const int *flags, global const uint *grid, global const uint *coords,
                    global uint *adjacency) {
    int cell = get_global_id(0);
    if (cell >= CELLS) return;
    int x = coords[3 * cell], y = coords[3 * cell + 1], z = coords[3 * cell + 2];
    for (int d = 0; d < LINKS; d++) {
        int to_x = (x + along_x[d] + NX) % NX, to_y = (y + along_y[d] + NY) % NY, to_z = z + along_z[d];
        int at = (to_z * NY + to_y) * NX + to_x;
        uint target = flags[at] ? d * CELLS + grid[at] : opposite[d] * CELLS + cell;
        adjacency[(size_t)cell * LINKS + d] = target;
    }
}

#define W0 (1.0 / 3.0)
#define W1 (1.0 / 18.0)
#define W2 (1.0 / 36.0)

/* At rest, of density 1. */
kernel void rest(global double *pdfs) {
    int cell = get_global_id(0);
    if (cell >= CELLS) return;
    for (int d = 0; d < DIRECTIONS; d++) {
        double weight = d == LINKS ? W0 : along_x[d] * along_x[d] + along_y[d] * along_y[d] + along_z[d] * along_z[d] == 1 ? W1 : W2;
        pdfs[AT(d)] = 3.0 * weight * (1.0 / 3.0);
    }
}

#define LOAD(d) double f##d = source[AT(d)];
#define RELAX(d, back, weight, speed)                                                                                 \
    {                                                                                                                 \
        double u = speed;                                                                                             \
        double even = OMEGA * (0.5 * (f##d + f##back) - u * u * weight * 4.5 - weight * common);                       \
        double odd = OMEGA_ODD * (0.5 * (f##d - f##back) - u * weight * 3.0);                                          \
        target[links[d]] = f##d - even - odd;                                                                         \
        target[links[back]] = f##back - even + odd;                                                                   \
    }

kernel void collide_and_push(global const double *source, global double *target, global const uint *adjacency) {
    int cell = get_global_id(0);
    if (cell >= CELLS) return;
    global const uint *links = adjacency + (size_t)cell * LINKS;
    LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7) LOAD(8) LOAD(9)
    LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14) LOAD(15) LOAD(16) LOAD(17) LOAD(18)
    double ux = f2 + f4 + f5 + f10 + f17 - f3 - f6 - f7 - f11 - f16;
    double uy = f0 + f4 + f6 + f9 + f15 - f1 - f5 - f7 - f12 - f14;
    double uz = f8 + f10 + f11 + f9 + f12 - f13 - f17 - f16 - f15 - f14;
    double density = f18 + f0 + f2 + f1 + f3 + f4 + f5 + f7 + f6 + f8 + f9 + f10 + f12 + f11 + f13 + f15 + f17 + f14 + f16;
    double common = density - (ux * ux + uy * uy + uz * uz) * 3.0 / 2.0;
    target[AT(18)] = f18 - OMEGA * (f18 - W0 * common);
    RELAX(0, 1, W1, uy)
    RELAX(2, 3, W1, ux)
    RELAX(8, 13, W1, uz)
    RELAX(6, 5, W2, -ux + uy)
    RELAX(4, 7, W2, ux + uy)
    RELAX(11, 17, W2, -ux + uz)
    RELAX(10, 16, W2, ux + uz)
    RELAX(12, 15, W2, -uy + uz)
    RELAX(9, 14, W2, uy + uz)
}

/* A body force along x (Luo 1998). */
kernel void force(global double *pdfs) {
    int cell = get_global_id(0);
    if (cell >= CELLS) return;
    pdfs[AT(2)] += 3.0 * W1 * FORCE;
    pdfs[AT(3)] -= 3.0 * W1 * FORCE;
    pdfs[AT(4)] += 3.0 * W2 * FORCE;
    pdfs[AT(5)] += 3.0 * W2 * FORCE;
    pdfs[AT(6)] -= 3.0 * W2 * FORCE;
    pdfs[AT(7)] -= 3.0 * W2 * FORCE;
    pdfs[AT(10)] += 3.0 * W2 * FORCE;
    pdfs[AT(11)] -= 3.0 * W2 * FORCE;
    pdfs[AT(16)] -= 3.0 * W2 * FORCE;
    pdfs[AT(17)] += 3.0 * W2 * FORCE;
}
