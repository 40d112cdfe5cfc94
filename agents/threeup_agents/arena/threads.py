"""One thread for linear algebra: more cost a policy's small products far more than they save."""

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits


def one_blas_thread() -> AbstractContextManager[object]:
    """Let BLAS work on one thread while this lasts, in whatever process it is entered.

    A product then also adds up in the same order on every machine's number of cores.
    """
    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits
