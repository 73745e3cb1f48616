/* Lagrangian shock hydrodynamics on hexahedra: LULESH (LLNL-TR-490254), the Sedov problem. As in ports to GPUs, an
 * element leaves the forces on its corners in arrays of their own, and each node gathers those of its corners. */

#define E_CUT 1e-7
#define P_CUT 1e-7
#define Q_CUT 1e-7
#define V_CUT 1e-10
#define U_CUT 1e-7
#define HOURGLASS 3.0
#define P_MIN 0.0
#define E_MIN -1e15
#define EOS_V_MAX 1e9
#define EOS_V_MIN 1e-9
#define TINY 1e-36

#define XI_M_SYMM 0x00001
#define XI_P_FREE 0x00010
#define ETA_M_SYMM 0x00040
#define ETA_P_FREE 0x00400
#define ZETA_M_SYMM 0x01000
#define ZETA_P_FREE 0x10000

#define ELEMENT                                                                                                       \
    int k = get_global_id(0);                                                                                         \
    if (k >= ELEMENTS) return;
#define NODE                                                                                                          \
    int n = get_global_id(0);                                                                                         \
    if (n >= NODES) return;
#define GATHER(to, from)                                                                                              \
    double to[8];                                                                                                     \
    for (int c = 0; c < 8; c++) to[c] = from[corners[c]];

/* Derivatives of the shape functions by one coordinate, from its cofactors. */
static void shape_row(double *b, double xi, double eta, double zeta) {
    b[0] = -xi - eta - zeta;
    b[1] = xi - eta - zeta;
    b[2] = xi + eta - zeta;
    b[3] = -xi + eta - zeta;
    b[4] = -b[2];
    b[5] = -b[3];
    b[6] = -b[0];
    b[7] = -b[1];
}

static double3 jacobian(const double *x) {
    double d60 = x[6] - x[0], d53 = x[5] - x[3], d71 = x[7] - x[1], d42 = x[4] - x[2];
    return (double3)(0.125 * (d60 + d53 - d71 - d42), 0.125 * (d60 - d53 + d71 - d42), 0.125 * (d60 + d53 + d71 + d42));
}

/* Shape function derivatives of an element, and its volume. */
static double shape(const double *x, const double *y, const double *z, double *bx, double *by, double *bz) {
    double3 fx = jacobian(x), fy = jacobian(y), fz = jacobian(z); /* along xi, eta, zeta */
    double cx_xi = fy.y * fz.z - fz.y * fy.z, cx_eta = -fy.x * fz.z + fz.x * fy.z, cx_zeta = fy.x * fz.y - fz.x * fy.y;
    double cy_xi = -fx.y * fz.z + fz.y * fx.z, cy_eta = fx.x * fz.z - fz.x * fx.z, cy_zeta = -fx.x * fz.y + fz.x * fx.y;
    double cz_xi = fx.y * fy.z - fy.y * fx.z, cz_eta = -fx.x * fy.z + fy.x * fx.z, cz_zeta = fx.x * fy.y - fy.x * fx.y;
    shape_row(bx, cx_xi, cx_eta, cx_zeta);
    shape_row(by, cy_xi, cy_eta, cy_zeta);
    shape_row(bz, cz_xi, cz_eta, cz_zeta);
    return 8.0 * (fx.y * cx_eta + fy.y * cy_eta + fz.y * cz_eta);
}

constant int faces[6][4] = {{0, 1, 2, 3}, {0, 4, 5, 1}, {1, 5, 6, 2}, {2, 6, 7, 3}, {3, 7, 4, 0}, {4, 7, 6, 5}};

/* A quarter of each face's area vector at its corners, summed. */
static void node_normals(const double *x, const double *y, const double *z, double *nx, double *ny, double *nz) {
    for (int c = 0; c < 8; c++) nx[c] = ny[c] = nz[c] = 0.0;
    for (int f = 0; f < 6; f++) {
        int a = faces[f][0], b = faces[f][1], c = faces[f][2], d = faces[f][3];
        double x0 = 0.5 * (x[d] + x[c] - x[b] - x[a]), x1 = 0.5 * (x[c] + x[b] - x[d] - x[a]);
        double y0 = 0.5 * (y[d] + y[c] - y[b] - y[a]), y1 = 0.5 * (y[c] + y[b] - y[d] - y[a]);
        double z0 = 0.5 * (z[d] + z[c] - z[b] - z[a]), z1 = 0.5 * (z[c] + z[b] - z[d] - z[a]);
        double area_x = 0.25 * (y0 * z1 - z0 * y1), area_y = 0.25 * (z0 * x1 - x0 * z1), area_z = 0.25 * (x0 * y1 - y0 * x1);
        for (int e = 0; e < 4; e++) {
            nx[faces[f][e]] += area_x;
            ny[faces[f][e]] += area_y;
            nz[faces[f][e]] += area_z;
        }
    }
}

constant int volume_corners[8][6] = {{1, 2, 3, 4, 5, 7}, {2, 3, 0, 5, 6, 4}, {3, 0, 1, 6, 7, 5}, {0, 1, 2, 7, 4, 6},
                                     {7, 6, 5, 0, 3, 1}, {4, 7, 6, 1, 0, 2}, {5, 4, 7, 2, 1, 3}, {6, 5, 4, 3, 2, 0}};

/* The derivative of an element's volume by a coordinate of corner c; a and b are the other two, in cyclic order. */
static double volume_derivative(const double *a, const double *b, int c) {
    constant int *at = volume_corners[c];
    double a0 = a[at[0]], a1 = a[at[1]], a2 = a[at[2]], a3 = a[at[3]], a4 = a[at[4]], a5 = a[at[5]];
    double b0 = b[at[0]], b1 = b[at[1]], b2 = b[at[2]], b3 = b[at[3]], b4 = b[at[4]], b5 = b[at[5]];
    return ((a1 + a2) * (b0 + b1) - (a0 + a1) * (b1 + b2) + (a0 + a4) * (b3 + b4) - (a3 + a4) * (b0 + b4) -
            (a2 + a5) * (b3 + b5) + (a3 + a5) * (b2 + b5)) *
           (1.0 / 12.0);
}

constant double modes[4][8] = {{1, 1, -1, -1, -1, -1, 1, 1},
                               {1, -1, -1, 1, -1, 1, 1, -1},
                               {1, -1, 1, -1, 1, -1, 1, -1},
                               {-1, 1, -1, 1, 1, -1, 1, -1}};

static void add_hourglass(double *force, const double *speed, double gamma[8][4], double coefficient) {
    for (int i = 0; i < 4; i++) {
        double sum = 0.0;
        for (int c = 0; c < 8; c++) sum += gamma[c][i] * speed[c];
        for (int c = 0; c < 8; c++) force[c] += coefficient * gamma[c][i] * sum;
    }
}

/* Stress and the Flanagan-Belytschko control of hourglass modes: forces on an element's corners. */
kernel void corner_forces(global const int *nodelist, global const double *x, global const double *y,
                          global const double *z, global const double *xd, global const double *yd,
                          global const double *zd, global const double *p, global const double *q,
                          global const double *ss, global const double *elemMass, global const double *volo,
                          global const double *v, global double *fx_elem, global double *fy_elem,
                          global double *fz_elem) {
    ELEMENT
    global const int *corners = nodelist + 8 * k;
    GATHER(px, x) GATHER(py, y) GATHER(pz, z) GATHER(vx, xd) GATHER(vy, yd) GATHER(vz, zd)
    double fx[8], fy[8], fz[8], gamma[8][4], dvdx[8], dvdy[8], dvdz[8];
    double stress = -p[k] - q[k], volume = volo[k] * v[k];
    node_normals(px, py, pz, fx, fy, fz);
    for (int c = 0; c < 8; c++) {
        fx[c] *= -stress;
        fy[c] *= -stress;
        fz[c] *= -stress;
        dvdx[c] = volume_derivative(py, pz, c);
        dvdy[c] = volume_derivative(pz, px, c);
        dvdz[c] = volume_derivative(px, py, c);
    }
    for (int i = 0; i < 4; i++) {
        double along_x = 0.0, along_y = 0.0, along_z = 0.0;
        for (int c = 0; c < 8; c++) {
            along_x += px[c] * modes[i][c];
            along_y += py[c] * modes[i][c];
            along_z += pz[c] * modes[i][c];
        }
        for (int c = 0; c < 8; c++)
            gamma[c][i] = modes[i][c] - (1.0 / volume) * (dvdx[c] * along_x + dvdy[c] * along_y + dvdz[c] * along_z);
    }
    double coefficient = -HOURGLASS * 0.01 * ss[k] * elemMass[k] / cbrt(volume);
    add_hourglass(fx, vx, gamma, coefficient);
    add_hourglass(fy, vy, gamma, coefficient);
    add_hourglass(fz, vz, gamma, coefficient);
    for (int c = 0; c < 8; c++) {
        fx_elem[8 * k + c] = fx[c];
        fy_elem[8 * k + c] = fy[c];
        fz_elem[8 * k + c] = fz[c];
    }
}

kernel void node_forces(global const int *nodeElemStart, global const int *nodeElemCornerList,
                        global const double *fx_elem, global const double *fy_elem, global const double *fz_elem,
                        global double *fx, global double *fy, global double *fz) {
    NODE
    double sum_x = 0.0, sum_y = 0.0, sum_z = 0.0;
    int end = nodeElemStart[n + 1];
    for (int i = nodeElemStart[n]; i < end; i++) {
        int corner = nodeElemCornerList[i];
        sum_x += fx_elem[corner];
        sum_y += fy_elem[corner];
        sum_z += fz_elem[corner];
    }
    fx[n] = sum_x;
    fy[n] = sum_y;
    fz[n] = sum_z;
}

kernel void accelerations(global const double *fx, global const double *fy, global const double *fz,
                          global const double *nodalMass, global double *xdd, global double *ydd, global double *zdd) {
    NODE
    double mass = nodalMass[n];
    xdd[n] = fx[n] / mass;
    ydd[n] = fy[n] / mass;
    zdd[n] = fz[n] / mass;
}

kernel void symmetry(global const int *symmX, global const int *symmY, global const int *symmZ, global double *xdd,
                     global double *ydd, global double *zdd) {
    int i = get_global_id(0);
    if (i >= (EDGE + 1) * (EDGE + 1)) return;
    xdd[symmX[i]] = 0.0;
    ydd[symmY[i]] = 0.0;
    zdd[symmZ[i]] = 0.0;
}

static double cut(double value, double least) { return fabs(value) < least ? 0.0 : value; }

kernel void velocities(global double *xd, global double *yd, global double *zd, global const double *xdd,
                       global const double *ydd, global const double *zdd, double dt) {
    NODE
    xd[n] = cut(xd[n] + xdd[n] * dt, U_CUT);
    yd[n] = cut(yd[n] + ydd[n] * dt, U_CUT);
    zd[n] = cut(zd[n] + zdd[n] * dt, U_CUT);
}

kernel void positions(global double *x, global double *y, global double *z, global const double *xd,
                      global const double *yd, global const double *zd, double dt) {
    NODE
    x[n] += xd[n] * dt;
    y[n] += yd[n] * dt;
    z[n] += zd[n] * dt;
}

#define TRIPLE(x1, y1, z1, x2, y2, z2, x3, y3, z3)                                                                    \
    ((x1) * ((y2) * (z3) - (z2) * (y3)) + (x2) * ((z1) * (y3) - (y1) * (z3)) + (x3) * ((y1) * (z2) - (z1) * (y2)))
#define D(a, b) x[a] - x[b], y[a] - y[b], z[a] - z[b]
#define PAIRS(of, a, b, c, d) (of[a] - of[b]) + (of[c] - of[d])
#define SUM(a, b, c, d) PAIRS(x, a, b, c, d), PAIRS(y, a, b, c, d), PAIRS(z, a, b, c, d)
static double triple(double x1, double y1, double z1, double x2, double y2, double z2, double x3, double y3, double z3) {
    return TRIPLE(x1, x2, x3, y1, y2, y3, z1, z2, z3);
}

static double element_volume(const double *x, const double *y, const double *z) {
    return (triple(SUM(3, 1, 7, 2), D(6, 3), D(2, 0)) + triple(SUM(4, 3, 5, 7), D(6, 4), D(7, 0)) +
            triple(SUM(1, 4, 2, 5), D(6, 1), D(5, 0))) *
           (1.0 / 12.0);
}

static double face_area(const double *x, const double *y, const double *z, constant int *at) {
    double fx = (x[at[2]] - x[at[0]]) - (x[at[3]] - x[at[1]]), gx = (x[at[2]] - x[at[0]]) + (x[at[3]] - x[at[1]]);
    double fy = (y[at[2]] - y[at[0]]) - (y[at[3]] - y[at[1]]), gy = (y[at[2]] - y[at[0]]) + (y[at[3]] - y[at[1]]);
    double fz = (z[at[2]] - z[at[0]]) - (z[at[3]] - z[at[1]]), gz = (z[at[2]] - z[at[0]]) + (z[at[3]] - z[at[1]]);
    double product = fx * gx + fy * gy + fz * gz;
    return (fx * fx + fy * fy + fz * fz) * (gx * gx + gy * gy + gz * gz) - product * product;
}

constant int length_faces[6][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}};

static double strain(const double *b, const double *speed, double volume) {
    return (1.0 / volume) * (b[0] * (speed[0] - speed[6]) + b[1] * (speed[1] - speed[7]) + b[2] * (speed[2] - speed[4]) +
                             b[3] * (speed[3] - speed[5]));
}

kernel void kinematics(global const int *nodelist, global const double *x, global const double *y,
                       global const double *z, global const double *xd, global const double *yd,
                       global const double *zd, global const double *volo, global const double *v,
                       global double *vnew, global double *delv, global double *arealg, global double *vdov,
                       global double *dxx, global double *dyy, global double *dzz, double dt) {
    ELEMENT
    global const int *corners = nodelist + 8 * k;
    GATHER(px, x) GATHER(py, y) GATHER(pz, z) GATHER(vx, xd) GATHER(vy, yd) GATHER(vz, zd)
    double volume = element_volume(px, py, pz), relative = volume / volo[k], area = 0.0;
    vnew[k] = relative;
    delv[k] = relative - v[k];
    for (int f = 0; f < 6; f++) area = fmax(area, face_area(px, py, pz, length_faces[f]));
    arealg[k] = 4.0 * volume / sqrt(area);
    for (int c = 0; c < 8; c++) {
        px[c] -= 0.5 * dt * vx[c];
        py[c] -= 0.5 * dt * vy[c];
        pz[c] -= 0.5 * dt * vz[c];
    }
    double bx[8], by[8], bz[8], det = shape(px, py, pz, bx, by, bz);
    double xx = strain(bx, vx, det), yy = strain(by, vy, det), zz = strain(bz, vz, det), sum = xx + yy + zz;
    vdov[k] = sum;
    dxx[k] = xx - sum / 3.0;
    dyy[k] = yy - sum / 3.0;
    dzz[k] = zz - sum / 3.0;
}

/* The difference between opposite faces' means: of corners a b c d less e f g h. */
#define FACES(of, a, b, c, d, e, f, g, h) 0.25 * ((of[a] + of[b] + of[c] + of[d]) - (of[e] + of[f] + of[g] + of[h]))
#define ALONG_I(of) FACES(of, 1, 2, 6, 5, 0, 3, 7, 4)
#define ALONG_J(of) FACES(of, 3, 2, 6, 7, 0, 1, 5, 4)
#define ALONG_K(of) FACES(of, 4, 5, 6, 7, 0, 1, 2, 3)

static void gradient(double ax, double ay, double az, double vx, double vy, double vz, double volume,
                     global double *delx, global double *delv) {
    double norm = 1.0 / (volume + TINY);
    *delx = volume / sqrt(ax * ax + ay * ay + az * az + TINY);
    *delv = ax * norm * vx + ay * norm * vy + az * norm * vz;
}

kernel void q_gradients(global const int *nodelist, global const double *x, global const double *y,
                        global const double *z, global const double *xd, global const double *yd,
                        global const double *zd, global const double *volo, global const double *vnew,
                        global double *delx_xi, global double *delx_eta, global double *delx_zeta,
                        global double *delv_xi, global double *delv_eta, global double *delv_zeta) {
    ELEMENT
    global const int *corners = nodelist + 8 * k;
    GATHER(px, x) GATHER(py, y) GATHER(pz, z) GATHER(vx, xd) GATHER(vy, yd) GATHER(vz, zd)
    double volume = volo[k] * vnew[k];
    double xi = ALONG_I(px), yi = ALONG_I(py), zi = ALONG_I(pz), xj = ALONG_J(px), yj = ALONG_J(py), zj = ALONG_J(pz);
    double xk = ALONG_K(px), yk = ALONG_K(py), zk = ALONG_K(pz);
    gradient(yi * zj - zi * yj, zi * xj - xi * zj, xi * yj - yi * xj, ALONG_K(vx), ALONG_K(vy), ALONG_K(vz), volume,
             delx_zeta + k, delv_zeta + k);
    gradient(yj * zk - zj * yk, zj * xk - xj * zk, xj * yk - yj * xk, ALONG_I(vx), ALONG_I(vy), ALONG_I(vz), volume,
             delx_xi + k, delv_xi + k);
    gradient(yk * zi - zk * yi, zk * xi - xk * zi, xk * yi - yk * xi, ALONG_J(vx), ALONG_J(vy), ALONG_J(vz), volume,
             delx_eta + k, delv_eta + k);
}

/* The monotonic limiter of one direction. */
static double limiter(global const double *delv, int k, int before, int after, int symmetric, int open) {
    double own = delv[k], norm = 1.0 / (own + TINY);
    double m = (symmetric ? own : delv[before]) * norm, p = (open ? 0.0 : delv[after]) * norm;
    double phi = 0.5 * (m + p);
    if (2.0 * m < phi) phi = 2.0 * m;
    if (2.0 * p < phi) phi = 2.0 * p;
    return phi < 0.0 ? 0.0 : phi > 1.0 ? 1.0 : phi;
}

kernel void q_regions(global const int *regElemlist, global const int *elemBC, global const int *lxim,
                      global const int *lxip, global const int *letam, global const int *letap,
                      global const int *lzetam, global const int *lzetap, global const double *delx_xi,
                      global const double *delx_eta, global const double *delx_zeta, global const double *delv_xi,
                      global const double *delv_eta, global const double *delv_zeta, global const double *vdov,
                      global const double *elemMass, global const double *volo, global const double *vnew,
                      global double *ql, global double *qq) {
    int i = get_global_id(0);
    if (i >= ELEMENTS) return;
    int k = regElemlist[i], bc = elemBC[k];
    double phi_xi = limiter(delv_xi, k, lxim[k], lxip[k], bc & XI_M_SYMM, bc & XI_P_FREE);
    double phi_eta = limiter(delv_eta, k, letam[k], letap[k], bc & ETA_M_SYMM, bc & ETA_P_FREE);
    double phi_zeta = limiter(delv_zeta, k, lzetam[k], lzetap[k], bc & ZETA_M_SYMM, bc & ZETA_P_FREE);
    double linear = 0.0, quadratic = 0.0;
    if (!(vdov[k] > 0.0)) {
        double xi = fmin(delv_xi[k] * delx_xi[k], 0.0), eta = fmin(delv_eta[k] * delx_eta[k], 0.0);
        double zeta = fmin(delv_zeta[k] * delx_zeta[k], 0.0), rho = elemMass[k] / (volo[k] * vnew[k]);
        linear = -0.5 * rho * (xi * (1.0 - phi_xi) + eta * (1.0 - phi_eta) + zeta * (1.0 - phi_zeta));
        quadratic = (2.0 / 3.0) * rho *
                    (xi * xi * (1.0 - phi_xi * phi_xi) + eta * eta * (1.0 - phi_eta * phi_eta) +
                     zeta * zeta * (1.0 - phi_zeta * phi_zeta));
    }
    qq[k] = quadratic;
    ql[k] = linear;
}

#define C1S (2.0 / 3.0)

static double pressure(double energy, double compression, double volume) {
    double p = cut(C1S * (compression + 1.0) * energy, P_CUT);
    return volume >= EOS_V_MAX ? 0.0 : p < P_MIN ? P_MIN : p;
}

static double sound_speed(double energy, double volume, double compression, double p) {
    double square = C1S * energy + volume * volume * C1S * (compression + 1.0) * p;
    return square <= 0.1111111e-36 ? 0.3333333e-18 : sqrt(square);
}

static double floored(double energy) {
    energy = cut(energy, E_CUT);
    return energy < E_MIN ? E_MIN : energy;
}

/* The equation of state, of regions as often as LULESH repeats it there to give them unequal cost. */
kernel void materials(global const int *regElemlist, global const int *regReps, global const double *vnew,
                      global const double *delv, global const double *ql, global const double *qq, global double *e,
                      global double *p, global double *q, global double *ss) {
    int i = get_global_id(0);
    if (i >= ELEMENTS) return;
    int k = regElemlist[i], repetitions = regReps[i];
    double volume = fmin(fmax(vnew[k], EOS_V_MIN), EOS_V_MAX), change = delv[k];
    double e_new = 0.0, p_new = 0.0, q_new = 0.0, compression = 1.0 / volume - 1.0;
    for (int r = 0; r < repetitions; r++) {
        double e_old = e[k], p_old = p[k], q_old = q[k], linear = ql[k], quadratic = qq[k];
        double midway = 1.0 / (volume - change * 0.5) - 1.0;
        e_new = e_old - 0.5 * change * (p_old + q_old);
        e_new = e_new < E_MIN ? E_MIN : e_new;
        double p_half = pressure(e_new, midway, volume), v_half = 1.0 / (1.0 + midway);
        q_new = change > 0.0 ? 0.0 : sound_speed(e_new, v_half, midway, p_half) * linear + quadratic;
        e_new = floored(e_new + 0.5 * change * (3.0 * (p_old + q_old) - 4.0 * (p_half + q_new)));
        p_new = pressure(e_new, compression, volume);
        double q_tilde = change > 0.0 ? 0.0 : sound_speed(e_new, volume, compression, p_new) * linear + quadratic;
        e_new = floored(e_new - (7.0 * (p_old + q_old) - 8.0 * (p_half + q_new) + (p_new + q_tilde)) * change * (1.0 / 6.0));
        p_new = pressure(e_new, compression, volume);
        if (change <= 0.0) q_new = cut(sound_speed(e_new, volume, compression, p_new) * linear + quadratic, Q_CUT);
    }
    p[k] = p_new;
    e[k] = e_new;
    q[k] = q_new;
    ss[k] = sound_speed(e_new, volume, compression, p_new);
}

kernel void volumes(global const double *vnew, global double *v) {
    ELEMENT
    double volume = vnew[k];
    v[k] = fabs(volume - 1.0) < V_CUT ? 1.0 : volume;
}

static double group_least(double own, local double *shared) {
    int lane = get_local_id(0);
    shared[lane] = own;
    for (int width = GROUP / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width) shared[lane] = fmin(shared[lane], shared[lane + width]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    double least = shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return least;
}

/* The Courant condition and the largest change of volume: the least time step of each group. */
kernel void constraints(global const int *regElemlist, global const double *ss, global const double *vdov,
                        global const double *arealg, global double *least) {
    local double shared[GROUP];
    int i = get_global_id(0);
    double courant = 1e20, hydro = 1e20;
    if (i < ELEMENTS) {
        int k = regElemlist[i];
        double change = vdov[k], length = arealg[k], square = ss[k] * ss[k];
        if (change < 0.0) square += 64.0 * 2.0 * 2.0 * length * length * change * change;
        if (change != 0.0) {
            courant = fmin(courant, length / sqrt(square));
            hydro = fmin(hydro, 0.1 / (fabs(change) + 1e-20));
        }
    }
    courant = group_least(courant, shared);
    hydro = group_least(hydro, shared);
    if (get_local_id(0) == 0) {
        least[get_group_id(0)] = courant;
        least[GROUPS + get_group_id(0)] = hydro;
    }
}

kernel void min_of_all(global const double *least, global double *steps) {
    local double shared[GROUP];
    for (int which = 0; which < 2; which++) {
        double own = 1e20;
        for (int i = get_local_id(0); i < GROUPS; i += GROUP) own = fmin(own, least[which * GROUPS + i]);
        own = group_least(own, shared);
        if (get_local_id(0) == 0) steps[which] = own;
    }
}
