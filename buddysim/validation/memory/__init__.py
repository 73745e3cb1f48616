"""Published peaks of training memory: their rows, how these are read, and the scripts that measured layers."""
