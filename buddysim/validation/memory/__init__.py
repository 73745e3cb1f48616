"""What training holds in memory, against published peaks: rows, readings, and the scripts that measured layers."""
