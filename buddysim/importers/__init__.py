"""Traces of other tools as trace files of this project: Accel-Sim's SASS traces, packed OpenCL bundles, archives."""
