"""Plans as files: what a scheme decided, in TOML, written by `plan_text` and read by `read_plan`."""
