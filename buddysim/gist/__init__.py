"""Gist (Jain et al., "Gist: Efficient Data Encoding for Deep Neural Network Training", ISCA 2018): its encodings.

A feature map is kept in a smaller form between its last forward and its first backward use: a bit per element of a ReLU
output (`binarize`), the elements that aren't zero (`ssdc`), or all of them in fewer bits (`dpr`).
"""
