"""scikit-learn's callbacks (1.9 and later), a task for each tree; without them nothing is called.

May import everything below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as ended
except ImportError:  # an older scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to set."""

    def ended(method: Any) -> Any:
        """The method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "begin_fit", "begin_trees", "end_fit", "end_trees", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(fit: Method) -> Method:
    """A fit after which callbacks end, whatever happened."""
    decorated: Method = ended(fit)
    return decorated


def context_of(model: Any) -> Any:
    """What stands for the fit that is going on; None where nobody listens."""
    return getattr(model, "_callback_fit_ctx", None) if getattr(model, "_skl_callbacks", None) else None


def begin_fit(model: Any, n_trees: int) -> None:
    """Tell that a fit of so many trees begins."""
    if getattr(model, "_skl_callbacks", None):
        model._init_callback_context(max_subtasks=n_trees).call_on_fit_task_begin(estimator=model)


def begin_trees(model: Any, n_trees: int) -> list[Any]:
    """Tell that the next trees begin; gives their tasks."""
    context = context_of(model)
    tasks = [] if context is None else [context.subcontext(task_name="tree") for _ in range(n_trees)]
    for task in tasks:
        task.call_on_fit_task_begin(estimator=model)
    return tasks


def end_trees(model: Any, tasks: list[Any]) -> bool:
    """Tell that trees are grown; gives whether a callback wants no more."""
    wishes = [bool(task.call_on_fit_task_end(estimator=model)) for task in tasks]
    return any(wishes)


def end_fit(model: Any) -> None:
    """Tell that all is done."""
    context = context_of(model)
    if context is not None:
        context.call_on_fit_task_end(estimator=model)
