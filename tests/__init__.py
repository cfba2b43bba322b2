# A package, so that tests share helpers by `from tests.helpers import ...` under --import-mode=importlib: pytest puts
# the repository root on the path (pyproject.toml), in every xdist worker too. Folders below need no __init__.py.
