"""Parsers of other libraries, each called here alone: any exception of a parser is an error of one line."""
