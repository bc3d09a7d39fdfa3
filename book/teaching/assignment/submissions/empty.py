# ruff: noqa: F821  # cells of a notebook, which binds these names further up
# What students are given, handed in as it is.

# %% answer-1
class Swish(autograd.Function):
    pass


# %% answer-2
class LazyQueue:
    pass


# %% answer-3
class Normalize(gluon.HybridBlock):
    pass


# %% answer-4
#
