"""Times of recorded operators: matrix products, attention, kernels bound by memory, experts, and the host's part."""
