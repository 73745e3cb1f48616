"""A training step of a model: what runs one, and the parts that are added to it (`recorded_step` puts it together)."""
