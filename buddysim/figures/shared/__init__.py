"""What figures share: where their numbers come from, and what the figures of the study have in common."""
