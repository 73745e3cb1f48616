"""What makes trace files and pages: captures, converters, validation."""
