"""vDNN: Rhu et al., "Virtualized Deep Neural Networks for Scalable, Memory-Efficient Design", MICRO 2016."""

TITLE = "vDNN"
ORDER = 10
DOCUMENT = "training-papers.md"
