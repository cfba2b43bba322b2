"""The CUDA backend as a program that shares a machine: waits, memory, faults, devices, arrays that lie on the device."""
