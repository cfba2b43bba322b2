"""Arrays that lie on a device, of whatever library. May import core.

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


def device_number(array: Any) -> int:
    """The number of the CUDA device that an array lies on."""
    where = getattr(array, "__dlpack_device__", None)
    return int(where()[1]) if where is not None else int(array.device.id)


def to_host(array: Any) -> Any:
    """The same as a NumPy array, if it lies on a device; what the host can read comes back as it is."""
    if not on_device(array):
        return array
    if hasattr(array, "cpu"):  # PyTorch
        return array.detach().cpu().numpy()
    from gputree.backends.cuda import import_cupy, working

    xp = import_cupy()
    with working(xp):
        return adopt(xp, array).get()


def adopt(xp: Any, array: Any) -> Any:
    """The same memory as an array of the module ``xp``."""
    return xp.asarray(array) if hasattr(array, "__cuda_array_interface__") else xp.from_dlpack(array)


def in_kind(result: NDArray[Any], like: Any) -> Any:
    """A result on the device of ``like``, as a tensor of PyTorch or else an array of CuPy, if it can be one."""
    if not on_device(like) or result.dtype.kind not in "biuf":
        return result
    if type(like).__module__.partition(".")[0] == "torch":
        return sys.modules["torch"].as_tensor(result, device=like.device)
    from gputree.backends.cuda import import_cupy, working

    xp = import_cupy()
    with working(xp), xp.cuda.Device(device_number(like)):
        return xp.asarray(result)
