/* Finite-volume geometric multigrid of fourth order, HPGMG's: -div(beta grad u) = f on a cube of eight boxes. A box has
 * nine vectors, one after the other in one array, each with two layers of ghost cells. */

#define GHOSTS 2
#define PITCH(dim) (((dim) + 2 * GHOSTS + 3) / 4 * 4)
#define VOLUME(dim) ((size_t)PITCH(dim) * ((dim) + 2 * GHOSTS) * ((dim) + 2 * GHOSTS))
#define VECTOR(box, number) ((box) + (number) * VOLUME(dim))
/* Of a cell of a box, ghosts from -GHOSTS. */
#define INDEX(i, j, k)                                                                                                \
    (((size_t)((k) + GHOSTS) * (dim + 2 * GHOSTS) + ((j) + GHOSTS)) * PITCH(dim) + ((i) + GHOSTS))

#define DINV 5
#define BETA_I 6
#define BETA_J 7
#define BETA_K 8

#define BOXES                                                                                                         \
    global double *box0, global double *box1, global double *box2, global double *box3, global double *box4,          \
        global double *box5, global double *box6, global double *box7
#define COARSE                                                                                                        \
    global double *coarse0, global double *coarse1, global double *coarse2, global double *coarse3,                   \
        global double *coarse4, global double *coarse5, global double *coarse6, global double *coarse7
#define ONE_OF(name, b)                                                                                               \
    ((b) < 4 ? ((b) < 2 ? ((b) == 0 ? name##0 : name##1) : ((b) == 2 ? name##2 : name##3))                            \
             : ((b) < 6 ? ((b) == 4 ? name##4 : name##5) : ((b) == 6 ? name##6 : name##7)))

/* A work-item for each cell of all boxes; `wide` cells along x of each box, `high` along y and z. */
#define CELL_OF(wide, high)                                                                                           \
    int i = get_global_id(0), j = get_global_id(1), layer = get_global_id(2), b = layer / (high), k = layer % (high); \
    if (i >= (wide) || j >= (high) || b >= 8) return;

/* Averages of ghost cells next to a wall at which the function is 0, from those of four cells inside. */
constant double ghost_weights[2][4] = {{-77.0 / 12.0, 43.0 / 12.0, -17.0 / 12.0, 3.0 / 12.0},
                                       {-505.0 / 12.0, 335.0 / 12.0, -145.0 / 12.0, 27.0 / 12.0}};

/* How many cells along a direction make up the cell `at` of `n`, the first of them, and which way the others follow. */
static int sources(int at, int n, int *first, int *way) {
    *way = at < n / 2 ? 1 : -1;
    *first = at < 0 ? 0 : at >= n ? n - 1 : at;
    return at < 0 || at >= n ? 4 : 1;
}

static double weight(int at, int n, int which) {
    if (at >= 0 && at < n) return 1.0;
    return ghost_weights[at < 0 ? -at - 1 : at - n][which];
}

/* The ghost cell of this number along a direction: those below come first. */
static int beside(int number, int dim) { return number < GHOSTS ? number - GHOSTS : number - GHOSTS + dim; }

/* Ghost cells of a vector, a work-item for each: of neighbouring boxes, or beyond a wall. First whole planes below and
 * above along k, then rows along j, then ends along i. */
kernel void fill_ghosts(BOXES, int number, int dim) {
    int side = dim + 2 * GHOSTS, n = 2 * dim, b = get_global_id(1), item = get_global_id(0), i, j, k;
    int planes = 2 * GHOSTS * side * side, rows = 2 * GHOSTS * side * dim, ends = 2 * GHOSTS * dim * dim;
    if (item >= planes + rows + ends || b >= 8) return;
    if (item < planes) {
        i = item % side - GHOSTS;
        j = item / side % side - GHOSTS;
        k = beside(item / (side * side), dim);
    } else if (item < planes + rows) {
        item -= planes;
        i = item % side - GHOSTS;
        j = beside(item / side % (2 * GHOSTS), dim);
        k = item / (side * 2 * GHOSTS);
    } else {
        item -= planes + rows;
        i = beside(item % (2 * GHOSTS), dim);
        j = item / (2 * GHOSTS) % dim;
        k = item / (2 * GHOSTS * dim);
    }
    int x = i + (b & 1) * dim, y = j + (b >> 1 & 1) * dim, z = k + (b >> 2) * dim;
    int x0, y0, z0, way_x, way_y, way_z;
    int nx = sources(x, n, &x0, &way_x), ny = sources(y, n, &y0, &way_y), nz = sources(z, n, &z0, &way_z);
    double sum = 0.0;
    for (int p = 0; p < nz; p++) {
        for (int q = 0; q < ny; q++) {
            for (int r = 0; r < nx; r++) {
                int at_x = x0 + r * way_x, at_y = y0 + q * way_y, at_z = z0 + p * way_z;
                int owner = (at_x >= dim) + 2 * (at_y >= dim) + 4 * (at_z >= dim);
                global const double *from = VECTOR(ONE_OF(box, owner), number);
                size_t source = INDEX(at_x - (owner & 1) * dim, at_y - (owner >> 1 & 1) * dim, at_z - (owner >> 2) * dim);
                sum += weight(x, n, r) * weight(y, n, q) * weight(z, n, p) * from[source];
            }
        }
    }
    VECTOR(ONE_OF(box, b), number)[INDEX(i, j, k)] = sum;
}

#define ALONG(beta, s) /* both faces across s: fluxes from averages of fourth order */                                \
    (beta[c] * (15.0 * (x[c - s] - x[c]) - (x[c - 2 * s] - x[c + s])) +                                               \
     beta[c + s] * (15.0 * (x[c + s] - x[c]) - (x[c + 2 * s] - x[c - s])))
#define ACROSS(beta, s, t) /* and what the coefficient's change along t adds */                                       \
    ((beta[c + t] - beta[c - t]) * (x[c - s + t] - x[c + t] - x[c - s - t] + x[c - t]) +                              \
     (beta[c + s + t] - beta[c + s - t]) * (x[c + s + t] - x[c + t] - x[c + s - t] + x[c - t]))

static double operator_at(global const double *x, global const double *beta_i, global const double *beta_j,
                          global const double *beta_k, size_t c, size_t row, size_t plane, double inverse_h2) {
    double direct = ALONG(beta_i, 1) + ALONG(beta_j, row) + ALONG(beta_k, plane);
    double crossed = ACROSS(beta_i, 1, row) + ACROSS(beta_i, 1, plane) + ACROSS(beta_j, row, 1) +
                     ACROSS(beta_j, row, plane) + ACROSS(beta_k, plane, 1) + ACROSS(beta_k, plane, row);
    return -inverse_h2 * (1.0 / 12.0) * (direct + 0.25 * crossed);
}

#define STENCIL                                                                                                       \
    global double *box = ONE_OF(box, b);                                                                              \
    size_t row = PITCH(dim), plane = row * (dim + 2 * GHOSTS);                                                        \
    global const double *beta_i = VECTOR(box, BETA_I), *beta_j = VECTOR(box, BETA_J), *beta_k = VECTOR(box, BETA_K);

/* Half a sweep of Gauss and Seidel: a work-item changes the cell of this colour of a pair, and copies the other. */
kernel void smooth(BOXES, int from, int to, int right, int colour, int dim, double inverse_h2) {
    CELL_OF(dim / 2, dim)
    STENCIL
    global const double *x = VECTOR(box, from), *rhs = VECTOR(box, right), *dinv = VECTOR(box, DINV);
    global double *next = VECTOR(box, to);
    int first = (j + k + colour) & 1;
    size_t c = INDEX(2 * i + first, j, k), other = INDEX(2 * i + 1 - first, j, k);
    next[other] = x[other];
    next[c] = x[c] + dinv[c] * (rhs[c] - operator_at(x, beta_i, beta_j, beta_k, c, row, plane, inverse_h2));
}

kernel void residual(BOXES, int from, int to, int right, int dim, double inverse_h2) {
    CELL_OF(dim, dim)
    STENCIL
    global const double *x = VECTOR(box, from), *rhs = VECTOR(box, right);
    size_t c = INDEX(i, j, k);
    VECTOR(box, to)[c] = rhs[c] - operator_at(x, beta_i, beta_j, beta_k, c, row, plane, inverse_h2);
}

kernel void zero(BOXES, int number, int dim) {
    int side = dim + 2 * GHOSTS;
    CELL_OF(side, side)
    VECTOR(ONE_OF(box, b), number)[INDEX(i - GHOSTS, j - GHOSTS, k - GHOSTS)] = 0.0;
}

kernel void copy(BOXES, int from, int to, int dim) {
    CELL_OF(dim, dim)
    global double *box = ONE_OF(box, b);
    size_t c = INDEX(i, j, k);
    VECTOR(box, to)[c] = VECTOR(box, from)[c];
}

/* 1 in the cells of one of 64 colours, which are 4 apart along each direction; 0 in the others. */
kernel void colour_cells(BOXES, int number, int colour, int dim) {
    CELL_OF(dim, dim)
    int x = i + (b & 1) * dim + colour, y = j + (b >> 1 & 1) * dim + colour / 4, z = k + (b >> 2) * dim + colour / 16;
    VECTOR(ONE_OF(box, b), number)[INDEX(i, j, k)] = x % 4 == 0 && y % 4 == 0 && z % 4 == 0;
}

/* Of the rows of the matrix: the diagonal's part and the sum of the other elements that the cells of this colour make up. */
kernel void add_rows(BOXES, int from, int diagonal, int beside_it, int dim, double inverse_h2) {
    CELL_OF(dim, dim)
    STENCIL
    global const double *x = VECTOR(box, from);
    size_t c = INDEX(i, j, k);
    double product = operator_at(x, beta_i, beta_j, beta_k, c, row, plane, inverse_h2);
    VECTOR(box, diagonal)[c] += x[c] * product;
    VECTOR(box, beside_it)[c] += fabs((1.0 - x[c]) * product);
}

/* Inverses of the diagonal, and of the rows' norm (Baker et al., "Multigrid smoothers for ultra-parallel computing"). */
kernel void invert_rows(BOXES, int diagonal, int beside_it, int dim) {
    CELL_OF(dim, dim)
    global double *box = ONE_OF(box, b);
    size_t c = INDEX(i, j, k);
    double own = VECTOR(box, diagonal)[c], sum = VECTOR(box, beside_it)[c];
    VECTOR(box, beside_it)[c] = 1.0 / (own >= 1.5 * sum ? own : own + 0.5 * sum);
    VECTOR(box, diagonal)[c] = 1.0 / own;
}

/* Means of eight cells, to the next coarser level; `dim` is the coarse one. */
kernel void restrict_cells(BOXES, COARSE, int number, int to, int dim) {
    CELL_OF(dim, dim)
    global double *target = VECTOR(ONE_OF(coarse, b), to) + INDEX(i, j, k);
    dim *= 2;
    global const double *fine = VECTOR(ONE_OF(box, b), number);
    size_t c = INDEX(2 * i, 2 * j, 2 * k), row = PITCH(dim), plane = row * (dim + 2 * GHOSTS);
    *target = 0.125 * (fine[c] + fine[c + 1] + fine[c + row] + fine[c + row + 1] + fine[c + plane] + fine[c + plane + 1] +
                       fine[c + plane + row] + fine[c + plane + row + 1]);
}

/* Adds the correction: quadratic along each direction, with the coarse cell's mean; `dim` is the coarse one. */
kernel void interpolate(BOXES, COARSE, int number, int dim) {
    CELL_OF(2 * dim, 2 * dim)
    global const double *coarse = VECTOR(ONE_OF(coarse, b), number);
    size_t c = INDEX(i / 2, j / 2, k / 2), step[3] = {1, PITCH(dim), (size_t)PITCH(dim) * (dim + 2 * GHOSTS)};
    double slope[3] = {i & 1 ? 0.125 : -0.125, j & 1 ? 0.125 : -0.125, k & 1 ? 0.125 : -0.125}, sum = 0.0;
    for (int r = -1; r <= 1; r++)
        for (int q = -1; q <= 1; q++)
            for (int p = -1; p <= 1; p++)
                sum += (p ? p * slope[0] : 1.0) * (q ? q * slope[1] : 1.0) * (r ? r * slope[2] : 1.0) *
                       coarse[c + p * (long)step[0] + q * (long)step[1] + r * (long)step[2]];
    dim *= 2;
    VECTOR(ONE_OF(box, b), number)[INDEX(i, j, k)] += sum;
}

constant double quartic[5] = {-3.0 / 128.0, 22.0 / 128.0, 1.0, -22.0 / 128.0, 3.0 / 128.0};

/* Sets cells to what the mean of quartics through five coarse cells along each direction gives; `dim` is the coarse one. */
kernel void interpolate_quartic(BOXES, COARSE, int number, int dim) {
    CELL_OF(2 * dim, 2 * dim)
    global const double *coarse = VECTOR(ONE_OF(coarse, b), number);
    int way_x = i & 1 ? -1 : 1, way_y = j & 1 ? -1 : 1, way_z = k & 1 ? -1 : 1;
    double sum = 0.0;
    for (int r = -2; r <= 2; r++) {
        for (int q = -2; q <= 2; q++) {
            double along = 0.0;
            for (int p = -2; p <= 2; p++)
                along += quartic[p + 2] * coarse[INDEX(i / 2 + p * way_x, j / 2 + q * way_y, k / 2 + r * way_z)];
            sum += quartic[q + 2] * quartic[r + 2] * along;
        }
    }
    dim *= 2;
    VECTOR(ONE_OF(box, b), number)[INDEX(i, j, k)] = sum;
}
