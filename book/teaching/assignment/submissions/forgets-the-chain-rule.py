# ruff: noqa: F821  # cells of a notebook, which binds these names further up
# The gradient of y is right, and dy is not used: right for y itself, wrong for any function of it.

# %% answer-1
class Swish(autograd.Function):
    def forward(self, x):
        s = nd.sigmoid(x)
        self.save_for_backward(x, s)
        return x * s

    def backward(self, dy):
        x, s = self.saved_tensors
        return s + x * s * (1 - s)


# %% answer-4
# Five operators became four in the pass `subexpressions`: both tanh have the same input. A tanh depends on nothing else.
