"""The scikit-learn estimators: a docstring, parameters and a recipe each."""
