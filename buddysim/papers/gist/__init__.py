"""Gist: Jain et al., "Gist: Efficient Data Encoding for Deep Neural Network Training", ISCA 2018."""

TITLE = "Gist"
ORDER = 30
DOCUMENT = "training-papers.md"
