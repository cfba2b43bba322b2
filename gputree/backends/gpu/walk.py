"""A forest on the device, and rows that walk down its trees. May import core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.gpu.codes import row_blocks
from gputree.backends.gpu.driver import ARRAY, BLOCKS, Driver, ints
from gputree.core.forest import Forest

FORK_BYTES = 1 << 26  # of the branches that rows have still to walk down
WARP, THREADS = 32, 128  # of a block that walks them
NODE = np.dtype(
    [("low", "f8"), ("feature", "i4"), ("first_child", "i4"), ("missing", "u2"), ("unseen", "u2"), ("kind", "i4")]
)
FORK = np.dtype([("own", "f8"), ("next", "i4"), ("end", "i4")])


def put_forest(driver: Driver, forest: Forest) -> tuple[Any, ...]:
    """The arguments that name a forest: compact nodes, lookups, roots."""
    nodes = np.empty(forest.n_nodes, NODE)
    for name in NODE.names or ():
        nodes[name] = getattr(forest, name)
    return (
        driver.put(nodes.view(np.float64), np.float64),
        driver.put(forest.lookup_ptr, np.int64),
        driver.put(forest.lookup_code, np.uint16),
        driver.put(forest.lookup_branch, np.uint16),
        driver.put(forest.roots, np.int32),
        *ints(forest.roots.size),
    )


def blocks(driver: Driver, forest: Forest, X: Any) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
    """Rows of X, some at a time: number of the first, how many, and the arguments of a kernel that walks."""
    trees = put_forest(driver, forest)
    for block in row_blocks(driver, X):
        yield block.first, block.size, (*trees, *block.arguments)


def apply(driver: Driver, forest: Forest, X: Any) -> NDArray[np.int32]:
    """Leaves i4 (n, T)."""
    trees = forest.roots.size
    leaves = np.empty((X.shape[0], trees), np.int32)
    for first, size, args in blocks(driver, forest, X):
        out = driver.empty((size, trees), np.int32)
        driver.launch(driver.kernel("predict", "apply_forest"), size * trees, 256, (*args, out))
        leaves[first : first + size] = out.get()
    return leaves


def predict(driver: Driver, forest: Forest, X: Any, share: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Sums of the leaf values of all trees, f8 (n, O'); of a forest that spreads rows, with the shares f8 (N,)."""
    outputs = forest.value.shape[1]
    total, value = np.empty((X.shape[0], outputs)), driver.put(forest.value, np.float64)
    links = () if share is None else (driver.put(forest.n_children, np.uint16), driver.put(share, np.float64))
    for first, size, args in blocks(driver, forest, X):
        out: ARRAY = driver.zeros((size, outputs), np.float64)
        args = (*args, value, *ints(outputs), out)
        if links:
            launch_shares(driver, forest.max_depth, size, (*args, *links))
        else:
            driver.launch(driver.kernel("predict", "predict_forest"), size, 256, args)
        total[first : first + size] = out.get()
    return total


def launch_shares(driver: Driver, depth: int, rows: int, args: tuple[Any, ...]) -> None:
    """Walk rows down all branches that spread them, as many at once as there is room for."""
    most = max(WARP, FORK_BYTES // (FORK.itemsize * (depth + 1)))
    threads = min(THREADS, most // WARP * WARP)
    blocks = min(-(-rows // threads), most // threads, BLOCKS * driver.sizes.multiprocessors)
    forks = driver.empty((depth + 1) * threads * blocks * FORK.itemsize // 8, np.float64)
    if blocks:
        driver.kernel("predict", "predict_shares")((blocks,), (threads,), (*args, forks))
