"""Splits scored by the bits that they save: the message of a node as a leaf less those of its branches as leaves.

May import NumPy and core only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gputree.core.criteria import Entropy
from gputree.core.description import Code, QuinlanRivest
from gputree.core.expr import FloatArray, Scalar, constant, log2


@dataclass(frozen=True)
class MessageLength(Entropy):
    """Bits of the exceptions that a test saves, less those of its leaves and of its cut.

    A count of classes in descending order is no sum over them, and a test pays for the number of those among which it
    was chosen: tables of this criterion are scored on the host. What a node costs whatever it tests (its attribute's
    name) is left out, so the test of highest score is that whose node and leaves cost least.

    Attributes
    ----------
    code : Code
    tree, errors : float
        The weights c_t of the tree and c_d of its exceptions.
    per_unit : float
        Rows that one unit of weight stands for.
    spaced : bool
        Whether of u cuts of a column only sqrt(u), equally spaced, are tried and paid for.

    References
    ----------
    Quinlan and Rivest (1989), Information and Computation 80:227-248, sections 4 and 5.
    """

    code: Code = field(default_factory=QuinlanRivest)
    tree: float = 1.0
    errors: float = 1.0
    per_unit: float = 1.0
    spaced: bool = False

    name = "mdl"
    traced = False

    def counts(self, stats: NDArray[np.int64], n_classes: int) -> FloatArray:
        """Rows of every class f8 (K, M), from channels i8 (C, M)."""
        return np.asarray(stats[:n_classes] * self.per_unit, np.float64)

    def value(self, x: FloatArray, n: FloatArray, X: FloatArray, N: FloatArray) -> FloatArray:
        """Bits of the exceptions, less than nothing."""
        return -self.errors * self.code.exceptions(x * self.per_unit)

    def charge(self, branches: FloatArray, tests: FloatArray, classes: int) -> FloatArray:
        """Bits of the leaves that a test makes, and of its number among all tests of its column."""
        leaf = self.code.shape(True, branches, np.zeros(np.shape(branches), bool)) + self.code.label(classes)
        return self.tree * (branches * leaf + self.test_bits(tests))

    def test_bits(self, tests: FloatArray) -> FloatArray:
        """Bits of the number of a test among some."""
        return log2(np.maximum(tests, 1.0))

    def cuts_tried(self, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
        """All of them, or the square root of their number."""
        return np.floor(np.sqrt(cuts.astype(np.float64))).astype(np.int64) if self.spaced else cuts

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        """Bits of labels, of which exceptions are at most about as many."""
        return N + constant(1.0, N)
