"""What figures share: where their numbers come from, how they look, how they are written."""
