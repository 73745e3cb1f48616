"""Weights, gradients and optimizer state divided among GPUs: what one of them holds, gathers and reduces."""
