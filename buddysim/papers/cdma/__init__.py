"""cDMA: Rhu et al., "Compressing DMA Engine: Leveraging Activation Sparsity for Training DNNs", HPCA 2018."""

TITLE = "cDMA"
ORDER = 20
DOCUMENT = "training-papers.md"
