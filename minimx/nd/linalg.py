"""`nd.linalg`: linear algebra on the last two axes, named after BLAS and LAPACK.

The functions are in minimx/ops/linalg.py (products), linalg_factor.py (factors, inverses) and linalg_packing.py (triangles).
"""

from ..ops.linalg import (
    linalg_gemm as gemm,
    linalg_gemm2 as gemm2,
    linalg_syrk as syrk,
    linalg_trmm as trmm,
)
from ..ops.linalg_factor import (
    linalg_det as det,
    linalg_gelqf as gelqf,
    linalg_inverse as inverse,
    linalg_potrf as potrf,
    linalg_potri as potri,
    linalg_slogdet as slogdet,
    linalg_sumlogdiag as sumlogdiag,
    linalg_syevd as syevd,
    linalg_trsm as trsm,
)
from ..ops.linalg_packing import (
    linalg_extractdiag as extractdiag,
    linalg_extracttrian as extracttrian,
    linalg_makediag as makediag,
    linalg_maketrian as maketrian,
)

__all__ = [
    "det", "extractdiag", "extracttrian", "gelqf", "gemm", "gemm2", "inverse", "makediag", "maketrian", "potrf", "potri",
    "slogdet", "sumlogdiag", "syevd", "syrk", "trmm", "trsm",
]  # fmt: skip
