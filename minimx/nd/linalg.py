"""`nd.linalg`: linear algebra on the last two axes, after BLAS and LAPACK. The functions are in minimx/ops/linalg.py and linalg_factor.py."""

from ..ops.linalg import linalg_extractdiag as extractdiag, linalg_extracttrian as extracttrian, linalg_gemm as gemm, linalg_gemm2 as gemm2, linalg_makediag as makediag, linalg_maketrian as maketrian, linalg_syrk as syrk, linalg_trmm as trmm
from ..ops.linalg_factor import linalg_det as det, linalg_gelqf as gelqf, linalg_inverse as inverse, linalg_potrf as potrf, linalg_potri as potri, linalg_slogdet as slogdet, linalg_sumlogdiag as sumlogdiag, linalg_syevd as syevd, linalg_trsm as trsm
