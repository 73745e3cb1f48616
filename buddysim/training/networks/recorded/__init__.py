"""Networks whose layers were recorded: one training step of a model, operator by operator (`training.autograd`)."""
