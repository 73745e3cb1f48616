"""Records steps of models from their configurations: puts the parts of a step together."""
