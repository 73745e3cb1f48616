"""Weights, gradients and optimizer state in host memory or on NVMe drives, and updates by the host's processor."""
