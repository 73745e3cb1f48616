"""Parsers that are not ours, each called here alone: any exception of theirs is an error of one line."""
