"""Matrix products leave the other processors to searches."""

from threadpoolctl import threadpool_info

from parquetry.analysis.one_thread import one_thread


def test_every_library_computes_in_one_thread_within():
    before = [each["num_threads"] for each in threadpool_info()]
    with one_thread():
        within = {each["internal_api"]: each["num_threads"] for each in threadpool_info()}
    # That of products, and that of scikit-learn.
    assert {"openblas", "openmp"} <= set(within)
    assert set(within.values()) == {1}
    assert [each["num_threads"] for each in threadpool_info()][: len(before)] == before
