"""Kernels of the fast CPU backend: plain Python text that `gputree.backends.jit` specialises and Numba compiles.

Each file is an ordinary module too, so that linters, type checkers and a debugger read it without Numba. May import
core's constants and each other.
"""
