"""A stand-in for CuPy, so that the code for real GPUs is tested where there is none.

`machine.py`: GPUs that run what is queued late, in any order that streams and events allow, and a memory pool; `arrays.py`: arrays, which
refuse what CuPy's refuse; `cupy.py`: the functions, with CuPy's parameters; `cuda.py`: devices, streams and events as CuPy names
them; `language.py`: generated kernels, whose CUDA C it reads.
"""
