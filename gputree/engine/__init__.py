"""How a tree grows: recipes, the growth loop, sampling, pruning. Knows no concrete backend."""
