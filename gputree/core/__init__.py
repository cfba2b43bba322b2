"""What a tree is: schema, target, criteria, splits, forest. Needs NumPy only."""
