"""oneDNN's kernels for a CPU, called through the library's C API. See library.py; the table of them is in minimx/kernels/."""
