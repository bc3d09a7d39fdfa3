"""MXNet-era code with nothing changed: `import mxnet` means minimx, on request.

Two ways to ask. A script or notebook as it is: `python -m minimx run train.py`, run.py and notebooks.py, with the old names of NumPy and
Python that such code uses (lent.py). Or one line before the first `import mxnet`: `import minimx.compat.mxnet` (alias.py). What MXNet
has and minimx has not, or has otherwise, is one table (differences.py), from which errors, `python -m minimx names` and a page of the
site are made; names.py compares it with the recorded names of MXNet 1.9.1. `import minimx` does none of this.
"""
