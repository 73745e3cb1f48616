"""What workloads are made of: regular kernels, reproducible random numbers, patterns of compressed sizes."""
