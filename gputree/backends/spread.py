"""Rows of split nodes and the branches they go to, where rows with a missing value go to several. May import core.

Such a row goes to every branch that holds known rows, with a share of its weight: floor(w * (n / N)) units for a branch
of known weight n, of N in all, and what is left to the heaviest branch, the first among equals. A share of no unit is
no row. Shares add up to the weight and depend on nothing but these numbers, in whatever order rows stand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import added
from gputree.backends.shard import Shard
from gputree.core.forest import SPREAD, ranges
from gputree.core.routes import shares
from gputree.core.splits import Splits


@dataclass(frozen=True, slots=True)
class Spread:
    """Where rows of split nodes go: their place among the rows of these nodes, the branch over all splits, the weight.

    ``source`` (E,), ``branch`` i8 (E,), ``share`` i8 (E,).
    """

    source: NDArray[np.intp]
    branch: NDArray[np.int64]
    share: NDArray[np.int64]


def is_spread(splits: Splits) -> bool:
    """Whether some node sends rows to several branches."""
    return bool((splits.missing == SPREAD).any())


def spread_rows(shard: Shard, splits: Splits, branch: NDArray[np.int64]) -> Spread:
    """Where rows go whose branch (R,) is known, and those of branch -1, which are spread."""
    seg, row = shard.segments(splits.node)
    given = shard.units_of(splits.node, row)
    weight = np.ones(row.size, np.int64) if given is None else given
    whole, parted = np.flatnonzero(branch >= 0), np.flatnonzero(branch < 0)
    known = added(branch[whole], int(splits.n_branches.sum()), weight[whole])
    count = splits.n_branches[seg[parted]].astype(np.int64)
    child = ranges((np.cumsum(splits.n_branches) - splits.n_branches)[seg[parted]], count)
    source = np.repeat(parted, count)
    share = shares(weight[parted], count, known[child])
    keep = share > 0
    return Spread(
        np.concatenate([whole, source[keep]]),
        np.concatenate([branch[whole], child[keep]]),
        np.concatenate([weight[whole], share[keep]]),
    )
