"""Sweeps: many points of either engine, each simulated once, with results in a store that figures and tables read."""
