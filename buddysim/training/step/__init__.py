"""A training step of a model, recorded: all that runs one is here, and so is what options may add to it."""
