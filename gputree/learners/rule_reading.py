"""The columns that a set of rules asks for, out of any table. May import everything below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from gputree.backends.arrays import to_host
from gputree.core.rule_bits import BLOCK_ROWS
from gputree.core.schema import Feature, Schema
from gputree.learners.frames import as_frame, columns_of
from gputree.learners.inputs import check_names, default_names, read_predict
from gputree.learners.tables import read_column


class Table(BaseEstimator):
    """Stands for a fitted estimator where an array is read."""

    unknown = "majority"
    _integers_are_names = True  # where a column holds categories

    def __init__(self, features: tuple[Feature, ...] = ()) -> None:
        self.features = features
        self.schema_, self.n_features_in_ = Schema(tuple(features)), len(features)

    def __sklearn_tags__(self) -> Any:
        """NaN is allowed, and sparse matrices."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def matrix_of(X: Any, features: tuple[Feature, ...], asked: tuple[int, ...]) -> Any:
    """The columns with these numbers as floats f4/f8 (n, asked), of an array by place and of a frame by name."""
    frame = as_frame(X)
    if frame is None:
        return to_host(read_predict(Table(features), X))[:, list(asked)]
    names, columns = [str(name) for name in frame.columns], list(columns_of(frame))
    wanted = [features[i].name for i in asked]
    if not set(wanted) <= set(names):
        check_names([feature.name for feature in features], names)
    by_place = not set(wanted) <= set(names) and default_names(len(names)) == tuple(f.name for f in features)
    places = list(asked) if by_place else [names.index(name) for name in wanted]
    parts = [read_column(columns[place], features[i]) for place, i in zip(places, asked, strict=True)]
    matrix = np.empty((frame.shape[0], len(asked)), np.result_type(np.float32, *parts), order="F")
    for i, part in enumerate(parts):
        matrix[:, i] = part
    return matrix


def blocks(matrix: Any) -> Iterator[NDArray[Any]]:
    """A matrix (n, k) in blocks of rows, dense."""
    for start in range(0, matrix.shape[0], BLOCK_ROWS):
        block = matrix[start : start + BLOCK_ROWS]
        yield block.toarray() if issparse(block) else block
