"""Modules that figures share: the source of their results, their tables, the style of the study's figures."""
