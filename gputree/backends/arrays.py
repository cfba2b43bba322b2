"""Arrays that lie on a device, of whatever library: CuPy, PyTorch, JAX, Numba, cuDF. May import core.

Anything with ``__cuda_array_interface__`` or, on a CUDA device, ``__dlpack__``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

CUDA_KINDS = (2, 13)  # of DLPack: device and managed memory


def on_device(array: Any) -> bool:
    """Whether an array lies in a CUDA device's memory."""
    if isinstance(array, np.ndarray):
        return False
    if hasattr(array, "__cuda_array_interface__"):
        return True
    kind = getattr(array, "__dlpack_device__", None)
    return kind is not None and kind()[0] in CUDA_KINDS


def to_host(array: Any) -> Any:
    """The same as a NumPy array, if it lies on a device; what the host can read comes back as it is."""
    if not on_device(array):
        return array
    if hasattr(array, "get"):
        return array.get()
    from gputree.backends.cuda import import_cupy

    return adopt(import_cupy(), array).get()


def adopt(xp: Any, array: Any) -> Any:
    """The same memory as an array of the module ``xp``."""
    return xp.asarray(array) if hasattr(array, "__cuda_array_interface__") else xp.from_dlpack(array)


def in_kind(result: NDArray[Any], like: Any) -> Any:
    """A result as an array of the library and device of ``like``, if that lies on one and can hold it."""
    if not on_device(like) or result.dtype.kind not in "biuf":
        return result
    library = type(like).__module__.partition(".")[0]
    if library == "torch":
        return sys.modules["torch"].as_tensor(result, device=like.device)
    if library in ("jax", "jaxlib"):
        return sys.modules["jax"].device_put(result, next(iter(like.devices())))
    from gputree.backends.cuda import import_cupy

    xp = import_cupy()
    with xp.cuda.Device(adopt(xp, like).device.id):
        return xp.asarray(result)
