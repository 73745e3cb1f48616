"""What docs/validation/hardware.md says about kernels."""

HEAD = """
## Kernels of real programs

![measured and simulated cycles](kernels.png)

The reference is Nsight Compute on a Quadro GV100. The programs are captured on a CPU and replayed on `gv100`, each
kernel from cold caches. [Method](method.md#kernels) says which kernels are compared and what is fitted. The captures
are not bundled; this part comes from stored results (`buddysim/validation/data/gv100_replays.csv`). Make captures with
`tools/capture_gpu_benchmarks.py`, and replay them with `validate kernels --captures FOLDER`. Every kernel:
[kernels.csv](kernels.csv).
""".strip()

NOTES = """
The tolerance of test programs' cycles is twice Accel-Sim's error.

### Limits

- [Captures](../how-to/capture-opencl.md) estimate SASS instructions from LLVM's code of the OpenCL versions. CUDA's
  backprop has 1.2 and 2 times the warp instructions, and CUDA's hotspot computes in double precision. lud has 1.2 times
  as many: four words of shared memory are one load of SASS.
- Instruction caches start cold. A capture has the estimated size of the code, but no program counters.
- Constant caches and TLBs are not modelled. *Assumed*: the launch latency, fitted to short kernels, includes their
  misses.
- The error of pathfinder has no known cause. The captures of backprop's first kernel and of b+tree lack instructions.
  2DConvolution waits for device memory, where the simulated reads between writes are too fast.
- bfs runs on another graph than the measured one, made by the rules of the same generator.
- Launch shapes of the reference come from the CUDA sources, not from counters.
""".strip()
