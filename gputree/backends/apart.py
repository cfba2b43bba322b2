"""Columns of categories that are grouped on the host, beside numeric columns that a kernel searches. May import core.

A backend counts both, and `read` gives the cells of the former; what follows is the same code for all backends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gputree.backends.groups import Merge, scan_groups
from gputree.backends.nodes import Found, Nodes, Segments
from gputree.backends.oracle import candidates
from gputree.backends.protocol import Backend
from gputree.backends.untraced import by_kind
from gputree.core.schema import Kind
from gputree.core.splits import TEST, Candidates, Search, Slots


def search_apart(backend: Backend, table: Any, slots: Slots, search: Search, merge: Merge | None = None) -> Candidates:
    """Best test of every slot and feature of a table, by a search that groups categories.

    The table has ``shard``, and ``features`` i4 (k, m), of which -1 is none; ``merge`` is the backend's own, if any.
    """
    assert search.groups is not None
    features, book, layout = table.features, table.shard.codes.book, table.shard.target.layout
    listed = (features >= 0) & (book.kind[features] == Kind.CATEGORICAL)
    numeric = tuple(g for g in search.generators if g.serves != Kind.CATEGORICAL)
    rest = replace(table, features=np.where(listed, np.int32(-1), features))
    found = backend.search(rest, slots, replace(search, generators=numeric, groups=None))
    best = Found(np.arange(features.size), *(getattr(found, name).reshape(-1).copy() for name in TEST))
    best.score[listed.reshape(-1)] = -np.inf
    nodes, lookups = Nodes.of(slots, layout, search), []
    read = backend.read(replace(table, features=np.where(listed, features, np.int32(-1))))
    for cells in by_kind(read, book, features, layout):
        own = Segments(cells, cells.pairs // features.shape[1], nodes, cells.pairs[:0]).known()
        if own.cells.code.size:
            test, lookup = scan_groups(own.cells, own.slot, own.nodes, search.groups, merge)
            best.put(own.marked(test))
            lookups.append(lookup)
    return candidates(best, features, lookups)
