"""Matrix products leave the other processors to searches."""

from importlib import import_module

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from parquetry.analysis.one_thread import one_thread


def threads() -> dict[str, int]:
    return {each["filepath"]: each["num_threads"] for each in threadpool_info()}


@pytest.mark.slow
def test_every_library_computes_in_one_thread_within():
    import_module("sklearn.manifold")
    # That of products, and that of scikit-learn.
    assert {"openblas", "openmp"} <= {each["internal_api"] for each in threadpool_info()}
    with threadpool_limits(2):
        with one_thread():
            assert set(threads().values()) == {1}
        assert set(threads().values()) == {2}
