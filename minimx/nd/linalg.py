"""`nd.linalg`: linear algebra on the last two axes, named after BLAS and LAPACK.

The functions are in minimx/ops/linalg.py (products), linalg_factor.py (factors, inverses) and linalg_packing.py (triangles).
"""

from ..ops.linalg import (
    gemm,
    gemm2,
    syrk,
    trmm,
)
from ..ops.linalg_factor import (
    det,
    gelqf,
    inverse,
    potrf,
    potri,
    slogdet,
    sumlogdiag,
    syevd,
    trsm,
)
from ..ops.linalg_packing import (
    extractdiag,
    extracttrian,
    makediag,
    maketrian,
)

__all__ = [
    "det", "extractdiag", "extracttrian", "gelqf", "gemm", "gemm2", "inverse", "makediag", "maketrian", "potrf", "potri",
    "slogdet", "sumlogdiag", "syevd", "syrk", "trmm", "trsm",
]  # fmt: skip
