"""Gist (Jain et al., "Gist: Efficient Data Encoding for Deep Neural Network Training", ISCA 2018): its encodings.

A feature map is stored encoded between its last forward and its first backward use: a bit per element of a ReLU output
(`binarize`), the nonzero elements (`ssdc`), or all elements in fewer bits (`dpr`).
"""
