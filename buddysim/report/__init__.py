"""Results for people and for programs: a table of one screen, JSON, tidy Parquet rows."""
