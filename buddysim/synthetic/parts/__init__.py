"""Parts of workloads: regular kernels, reproducible random numbers, patterns of compressed sizes."""
