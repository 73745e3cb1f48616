"""Adapters: small weights that are trained next to frozen ones (LoRA), which may be quantised (QLoRA)."""
