"""Oversubscribed Unified Memory on a real card: the measurements, the programs as traces, what a replay gives."""
