"""The parts of the CUDA backend. Nothing here imports CuPy: a `driver.Driver` brings the array module."""
