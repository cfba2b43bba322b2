"""The libraries of `benchmarks.compare`: one setting, said to each of them in its own words.

Equal are rows (float32 as they come; what a library makes of them is made in its time), threads, depth, rows of a leaf,
255 bins a column where a library bins, and no regularisation. What else is chosen, and why:

- scikit-learn has no bins: exact cuts. One tree uses one thread. "gputree exact" has none either: max_bins=None.
- LightGBM, one tree: gbdt, one iteration, learning rate 1. Classes start from equal odds (no boost_from_average), so
  that all Hessians are equal and a split by gradients is one by the Gini index. num_leaves is 2^depth, or 2^17 (its
  most), but no more than there are rows for. Its tables, which it makes for all leaves at the start (7 GiB for 2^16 of
  28 columns), share 2 GiB (histogram_pool_size), which holds those of depth 10 of 28 columns wholly. A forest: rf,
  0.632 of the rows without replacement (as many as a bootstrap has), columns by node.
- XGBoost: hist on a QuantileDMatrix. A forest: num_parallel_tree in one round, learning rate 1, 0.632 of the rows. With
  equal odds a row's Hessian is 1/4 for two classes and 1 for numbers, so that min_child_weight is the rows of a leaf.
- Both grow a tree for each class where there are more than two, and no tree for all of them.
- YDF: RandomForestLearner for one tree too, without bootstrap; columns in 255 bins; its depth counts the root.

Run as a program, it fits once and prints the memory that this took: see `memory_of`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_fit import WARM_UP_ROWS, node_count, peak_bytes, resident_bytes

DRAWN = 0.632  # share of the rows that a bootstrap has: 1 - 1/e
MOST_LEAVES = 1 << 17  # LightGBM takes no more
POOL_MIB = 2048
BINS = 255
NUMBER_OF_NODES = re.compile(rb"num_nodesSL\x00{7}.(\d+)", re.DOTALL)  # in XGBoost's UBJSON, a text of less than 256


@dataclass(frozen=True)
class Setting:
    """What to grow. `classes` 0: numbers; `depth` None: no limit. A forest draws rows, and columns by node."""

    classes: int = 2
    depth: int | None = None
    min_leaf: int = 1
    trees: int = 1
    forest: bool = False
    threads: int = 2
    seed: int = 0

    def drawn_columns(self, columns: int) -> int:
        """Columns tried in a node of a forest."""
        return max(1, int(columns**0.5))


class Library:
    """How one library fits, predicts and tells the number of its nodes."""

    name = module = ""

    def missing(self) -> str:
        """Why it cannot be used here, else empty."""
        if find_spec(self.module) is None:
            return "not installed"
        try:
            importlib.import_module(self.module)
        except Exception as error:  # a broken installation raises whatever it likes
            return f"cannot be imported: {error}".splitlines()[0]
        return ""

    def version(self) -> str:
        return str(getattr(importlib.import_module(self.module), "__version__", ""))

    def fit(self, setting: Setting, X: Any, y: Any) -> Any:
        raise NotImplementedError

    def predict(self, model: Any, setting: Setting, X: Any) -> Any:
        """What the library gives for rows: shares of classes, or numbers."""
        raise NotImplementedError

    def nodes(self, model: Any) -> int:
        raise NotImplementedError


class Estimators(Library):
    """Estimators of scikit-learn's kind."""

    def model(self, setting: Setting) -> Any:
        kind = "Regressor" if setting.classes == 0 else "Classifier"
        limits: dict[str, Any] = {
            "max_depth": setting.depth,
            "min_samples_leaf": setting.min_leaf,
            "random_state": setting.seed,
        }
        if not setting.forest:
            return self.made(f"DecisionTree{kind}", limits)
        limits |= {"n_estimators": setting.trees, "n_jobs": setting.threads, "max_features": "sqrt"}
        return self.made(f"RandomForest{kind}", limits)

    def made(self, name: str, parameters: dict[str, Any]) -> Any:
        raise NotImplementedError

    def fit(self, setting: Setting, X: Any, y: Any) -> Any:
        return self.model(setting).fit(X, y)

    def predict(self, model: Any, setting: Setting, X: Any) -> Any:
        return model.predict_proba(X) if setting.classes else model.predict(X)

    def nodes(self, model: Any) -> int:
        return sum(node_count(tree) for tree in getattr(model, "estimators_", [model]))


class Gputree(Estimators):
    """gputree on one device; a tree, which has no n_jobs, takes its threads from OMP_NUM_THREADS at each call."""

    module = "gputree"

    def __init__(self, device: str, name: str, **parameters: Any) -> None:
        self.device, self.name, self.parameters = device, name, parameters

    def missing(self) -> str:
        if self.device == "jit" and find_spec("numba") is None:
            return "needs Numba, which is not installed"
        return super().missing()

    def made(self, name: str, parameters: dict[str, Any]) -> Any:
        return getattr(importlib.import_module("gputree"), name)(device=self.device, **parameters, **self.parameters)

    def fit(self, setting: Setting, X: Any, y: Any) -> Any:
        with environment("OMP_NUM_THREADS", str(setting.threads)):
            return super().fit(setting, X, y)

    def predict(self, model: Any, setting: Setting, X: Any) -> Any:
        with environment("OMP_NUM_THREADS", str(setting.threads)):
            return super().predict(model, setting, X)

    def nodes(self, model: Any) -> int:
        return node_count(model)


class ScikitLearn(Estimators):
    name, module = "scikit-learn", "sklearn"

    def made(self, name: str, parameters: dict[str, Any]) -> Any:
        where = "sklearn.ensemble" if name.startswith("RandomForest") else "sklearn.tree"
        return getattr(importlib.import_module(where), name)(**parameters)


class LightGbm(Library):
    name, module = "LightGBM", "lightgbm"

    def parameters(self, setting: Setting, rows: int, columns: int) -> dict[str, Any]:
        leaves = min(MOST_LEAVES, 2 ** (setting.depth or 17), max(2, rows // setting.min_leaf))
        found: dict[str, Any] = {
            **{"num_leaves": leaves, "histogram_pool_size": POOL_MIB},
            **{"max_depth": -1 if setting.depth is None else setting.depth, "min_data_in_leaf": setting.min_leaf},
            **{"min_sum_hessian_in_leaf": 0.0, "min_gain_to_split": 0.0, "lambda_l1": 0.0, "lambda_l2": 0.0},
            **{"max_bin": BINS, "num_threads": setting.threads, "seed": setting.seed, "verbosity": -1},
            **{"objective": {0: "regression", 2: "binary"}.get(setting.classes, "multiclass")},
            **{"boost_from_average": setting.classes == 0, "boosting": "gbdt", "learning_rate": 1.0},
        }
        if setting.classes > 2:
            found["num_class"] = setting.classes
        if setting.forest:
            share = setting.drawn_columns(columns) / columns
            found |= {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": DRAWN, "feature_fraction_bynode": share}
        return found

    def fit(self, setting: Setting, X: Any, y: Any) -> Any:
        import lightgbm

        parameters = self.parameters(setting, *X.shape)
        return lightgbm.train(parameters, lightgbm.Dataset(X, y, params=parameters), setting.trees)

    def predict(self, model: Any, setting: Setting, X: Any) -> Any:
        return model.predict(X, num_threads=setting.threads)

    def nodes(self, model: Any) -> int:
        leaves = re.findall(r"^num_leaves=(\d+)$", model.model_to_string(), re.MULTILINE)
        return sum(2 * int(n) - 1 for n in leaves)


class XgBoost(Library):
    name, module = "XGBoost", "xgboost"

    def parameters(self, setting: Setting, columns: int) -> dict[str, Any]:
        weight = {0: 1.0, 2: 0.25}.get(setting.classes, 0.0) * setting.min_leaf if setting.min_leaf > 1 else 0.0
        found: dict[str, Any] = {
            **{"tree_method": "hist", "max_bin": BINS, "nthread": setting.threads, "seed": setting.seed},
            **{"max_depth": setting.depth or 0, "max_leaves": 0, "min_child_weight": weight, "learning_rate": 1.0},
            **{"reg_lambda": 0.0, "reg_alpha": 0.0, "gamma": 0.0, "verbosity": 0},
            **{"objective": {0: "reg:squarederror", 2: "binary:logistic"}.get(setting.classes, "multi:softprob")},
        }
        if setting.classes:
            found["base_score"] = 0.5
        if setting.classes > 2:
            found["num_class"] = setting.classes
        if setting.forest:
            # It rounds the number of columns down: the half keeps it from losing one.
            share = min(1.0, (setting.drawn_columns(columns) + 0.5) / columns)
            found |= {"num_parallel_tree": setting.trees, "subsample": DRAWN, "colsample_bynode": share}
        return found

    def fit(self, setting: Setting, X: Any, y: Any) -> Any:
        import xgboost

        table = xgboost.QuantileDMatrix(X, y, max_bin=BINS, nthread=setting.threads)
        return xgboost.train(self.parameters(setting, X.shape[1]), table, 1)

    def predict(self, model: Any, setting: Setting, X: Any) -> Any:
        return model.inplace_predict(X)  # with the threads of the fit

    def nodes(self, model: Any) -> int:
        return sum(int(n) for n in NUMBER_OF_NODES.findall(bytes(model.save_raw("ubj"))))


class Ydf(Library):
    name, module = "YDF", "ydf"

    def fit(self, setting: Setting, X: Any, y: Any) -> Any:
        import ydf

        ydf.verbose(0)
        learner = ydf.RandomForestLearner(
            label="y",
            task=ydf.Task.CLASSIFICATION if setting.classes else ydf.Task.REGRESSION,
            num_trees=setting.trees,
            max_depth=-1 if setting.depth is None else setting.depth + 1,
            min_examples=setting.min_leaf,
            bootstrap_training_dataset=setting.forest,
            num_candidate_attributes=setting.drawn_columns(X.shape[1]) if setting.forest else -1,
            discretize_numerical_columns=True,
            num_discretized_numerical_bins=BINS,
            winner_take_all=False,
            compute_oob_performances=False,
            num_threads=setting.threads,
            random_seed=setting.seed,
        )
        return learner.train({"X": X, "y": y})

    def predict(self, model: Any, setting: Setting, X: Any) -> Any:
        return model.predict({"X": X}, num_threads=setting.threads)

    def nodes(self, model: Any) -> int:
        return int(model.num_nodes())


PEERS: tuple[Library, ...] = (ScikitLearn(), LightGbm(), XgBoost(), Ydf())
OURS = (
    Gputree("jit", "gputree jit"),
    Gputree("jit", "gputree exact", max_bins=None),
    Gputree("numpy", "gputree numpy"),
)
LIBRARIES: dict[str, Library] = {one.name: one for one in (*OURS, *PEERS)}


@contextlib.contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


# --- scores ---------------------------------------------------------------------------------------------------------


def scores_of(predicted: Any, y: Any, setting: Setting) -> dict[str, float]:
    """R^2 of numbers; accuracy of classes, and the AUC of two of them. Two equal shares are the first class."""
    from sklearn.metrics import r2_score, roc_auc_score

    values = np.asarray(predicted, dtype=np.float64)
    if setting.classes == 0:
        return {"R2": float(r2_score(y, values))}
    if setting.classes > 2:
        return {"accuracy": float(np.mean(values.argmax(axis=1) == y))}
    share = values[:, 1] if values.ndim == 2 else values
    found = {"accuracy": float(np.mean((share > 0.5) == y))}
    return found | ({"AUC": float(roc_auc_score(y, share))} if np.unique(y).size == 2 else {})


# --- memory ---------------------------------------------------------------------------------------------------------


def memory_of(library: str, setting: Setting, folder: Path) -> int:
    """Peak memory of a fit in a fresh interpreter, over what is held before: X, y and what a first fit leaves."""
    command = [sys.executable, "-m", "benchmarks.compare_peers", library, json.dumps(asdict(setting)), str(folder)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or [f"status {answer.returncode}"])[-1]
        raise RuntimeError(f"the fit for its memory failed: {last}")
    return int(answer.stdout.splitlines()[-1])


def memory_here(library: Library, setting: Setting, folder: Path) -> int:
    """Measure in this process, which must have done nothing else."""
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    warm_up(library, setting, X, y)
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc: give back what the first fit has freed
        ctypes.CDLL(None).malloc_trim(0)
    before = resident_bytes()
    library.fit(setting, X, y)
    return peak_bytes() - before


def warm_up(library: Library, setting: Setting, X: Any, y: Any) -> None:
    """Fit few rows and predict some: imports, compiled code and thread pools are paid once.

    Few are 70,000: below 65,536 gputree has codes of another width, and other kernels for them.
    """
    few = Setting(**{**asdict(setting), "trees": 1})
    model = library.fit(few, X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    library.predict(model, few, X[:1000])


if __name__ == "__main__":
    print(memory_here(LIBRARIES[sys.argv[1]], Setting(**json.loads(sys.argv[2])), Path(sys.argv[3])))
