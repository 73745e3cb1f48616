"""The search for a plan that fits: what to keep, recompute, offload or compress, group by group, and what it costs."""
