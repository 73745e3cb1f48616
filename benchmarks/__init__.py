"""How fast and how small the simulator is: ``python -m benchmarks``. One file per thing that is measured."""
