"""Reference models: slow, readable Python implementations that the fast ones are tested against."""
