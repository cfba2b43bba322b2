"""Looking at a fitted forest: text, plots, rules, exports, importances."""
