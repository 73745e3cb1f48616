"""What docs/validation/hardware.md says about curves."""

HEAD = """
## Curves of microbenchmarks

![measured and simulated curves](curves.png)

Tolerances of each curve: 5 % median error, 20 % error at the 90th percentile, 15 % error in the footprint of a
capacity transition. The fitted keys come from the same curves; [Method](method.md#curves) says which points. Every
point: [curves.csv](curves.csv).
""".strip()

NOTES = """
### Causes of errors outside tolerance

Rows *what if* of the table have a quantity on a machine with one change.

- **L1 replacement** is not published. The simulated LRU drops from the L1's rate to the L2's as soon as a cyclic set
  exceeds the L1. A measured pass misses 4.0 (V100), 3.1 (GH200) and about 3 (A100) lines for each line beyond 0.94,
  0.84 and 0.79 of the L1's size. Every access misses from 1.25, 1.25 and 1.16 of it. LRU with 3 ways and 120 KiB, 2
  ways and 213 KiB, 2 ways and 152 KiB would show these slopes. No source gives such sizes.
- **8 warps on one set per SM**: seven warps request lines while the misses of the first are in flight. The simulated
  curve is the same with 4 and 64 ways. How far real warps drift apart is unknown.
- **A100, shared set from 20 MiB**: the simulated rate is twice the measured one. Simulated SMs run in lockstep, so only
  0.4 % of the loaded sectors come from device memory.
- **Refresh**: the presets refresh all banks at once, 9 % of the time (tRFC / tREFI). Measured writes reach 99.7 % of a
  V100's peak, and reads of an H200 97 %, which such a refresh forbids. Single-bank refresh corrects `init` and the
  H200's shared set. It makes `read` on a V100 too fast by up to 20 %, and kernels that also store by 7 to 9 %. A delay
  of 10 cycles between starting warps corrects `read`, but `scale`, `triad`, `3pt` and `5pt` stay 8 to 14 % too fast. An
  unknown cost of mixing reads and writes is missing.
- **Stores and drains**: without the last three keys of the table, a V100 meets 10 of STREAM's 12 tolerances, an A100 8
  and a GH200 4. `init` on a GH200 is 4 to 17 % too fast below 20 % occupancy, up to 70 cycles for a wave of blocks.
""".strip()
