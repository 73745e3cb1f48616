"""Weights held in 4 bits, and the layers that have them."""
