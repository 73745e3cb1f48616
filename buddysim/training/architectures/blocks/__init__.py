"""Parts that several architectures have: norms, rotary embeddings, attention, masks, experts, losses."""
