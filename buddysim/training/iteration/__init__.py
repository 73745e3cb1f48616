"""One training iteration: plan, program of steps and copies, device memory, timeline."""
