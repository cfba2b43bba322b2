"""Rules that end growth: objects that any tree takes as ``stopping=``, alone or joined; forests take those that count.

``a | b`` stops where one of the rules does, ``a & b`` where both do. A node whose test was stopped is a leaf, and
``model.stop_reason_`` says of every leaf why it is one; `gputree.export_text` shows it.

Rules see the best test of every open node, and look for no other: `MinSamples` with ``leaf=5`` ends a node whose best
test makes a leaf of three rows, where ``min_samples_leaf=5`` passes such tests over. And a rule that looks at one test
never learns what takes two: no single test of an exclusive or says anything.

In a forest a rule sees the best test of the features that a node has drawn. Rules that look at rows (`Validation`,
`CrossValidated`, and one of your own unless it sets ``follows_rows = False``) follow those of a single tree.

A rule of your own says ``why`` and gives, for each growth, a check of the tests that are proposed: bool (k,), which of
their nodes end. It is told of the `Fit`, and the check of `Proposals`.

Examples
--------
>>> import numpy as np
>>> from gputree import DecisionTreeClassifier, export_text
>>> from gputree.stopping import ChiSquare, MaxDepth
>>> X, y = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 5, axis=0), np.repeat([0, 0, 0, 1], 5)
>>> model = DecisionTreeClassifier(stopping=MaxDepth(1) | ChiSquare(0.1)).fit(X, y)
>>> print(export_text(model))
|--- feature_0 <= 0.50
|   |--- class: 0 (pure)
|--- feature_0 >  0.50
|   |--- class: 0 (depth 1)

>>> class Never(Rule):
...     "No node tests some column."
...
...     follows_rows = False
...
...     def __init__(self, column):
...         self.column = column
...
...     @property
...     def why(self):
...         return f"column {self.column}"
...
...     def begin(self, fit):
...         return lambda proposed, news: proposed.splits.feature == self.column
>>> DecisionTreeClassifier(stopping=Never(0)).fit(X, y).stop_reason_.tolist()
['column 0']
"""

from typing import Any

from gputree.engine.judge import Proposals
from gputree.learners.stopped import AllOf, AnyOf, Fit, Rule
from gputree.stopping.bits import SavesBits
from gputree.stopping.evidence import ChiSquare, CrossValidated, Validation
from gputree.stopping.limits import MaxDepth, MaxIterations, MaxNodes, MinSamples, NoGain

RULES: dict[str, Any] = {
    rule.__name__: rule
    for rule in (
        *(AllOf, AnyOf, ChiSquare, CrossValidated, MaxDepth, MaxIterations, MaxNodes, MinSamples, NoGain, SavesBits),
        Validation,
    )
}

__all__ = [
    "AllOf",
    "AnyOf",
    "ChiSquare",
    "CrossValidated",
    "Fit",
    "MaxDepth",
    "MaxIterations",
    "MaxNodes",
    "MinSamples",
    "NoGain",
    "Proposals",
    "Rule",
    "SavesBits",
    "Validation",
]
