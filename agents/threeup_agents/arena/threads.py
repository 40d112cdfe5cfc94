"""One thread for linear algebra: more cost a policy's small products far more than they save."""

import sys
from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Let BLAS work on one thread while this lasts, in whatever process it is entered.

    A product then also adds up in the same order on every machine's number of cores.
    """
    limits: AbstractContextManager[object] = _libraries(len(sys.modules)).limit(
        limits=1, user_api="blas"
    )
    return limits


@lru_cache(maxsize=1)
def _libraries(num_modules: int) -> ThreadpoolController:
    """What is loaded; looked up again once more modules are, since an import brings libraries."""
    return ThreadpoolController()
