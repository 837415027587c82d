"""Deformable attention: one function, its reference and its kernels; and convolutions in training on CPU."""
