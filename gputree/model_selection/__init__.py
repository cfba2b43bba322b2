"""Estimating errors, choosing parameters and comparing models, for trees and any estimator of scikit-learn.

What scikit-learn's module of this name does, its functions do with this library's models too. Here is what they lack:
errors as mean of folds and pooled, leave-one-out whose trees grow together, the .632 estimate, one standard error, the
cost-complexity sequence, error beside size and time over many tables.
"""

from gputree.model_selection.choose import ByScore, OneStandardError, Selection, select
from gputree.model_selection.compare import Comparison, compare
from gputree.model_selection.curves import LearningCurve, learning_curve
from gputree.model_selection.estimate import ErrorEstimate, estimate_error
from gputree.model_selection.sizes import size_of
from gputree.model_selection.splits import Bootstrap, Holdout

__all__ = [
    "Bootstrap",
    "ByScore",
    "Comparison",
    "ErrorEstimate",
    "Holdout",
    "LearningCurve",
    "OneStandardError",
    "Selection",
    "compare",
    "estimate_error",
    "learning_curve",
    "select",
    "size_of",
]
