"""Fits of operators' constants to measured rows, vectorised; nothing here is needed to simulate."""
