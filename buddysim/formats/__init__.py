"""What a captured training leaves beside its trace: operator graphs and feature maps."""
