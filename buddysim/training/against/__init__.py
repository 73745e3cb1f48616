"""A prediction against a user's own measurement of the same training step."""
