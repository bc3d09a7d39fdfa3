"""Faster kernels than the operators' own, for groups of operators on one kind of device. Operators know nothing of them."""
