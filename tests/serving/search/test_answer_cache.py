"""The cache keeps the latest answers and never exceeds its size."""

from concurrent.futures import ThreadPoolExecutor

from parquetry.serving.search.answer_cache import AnswerCache


def test_what_was_not_asked_for_the_longest_goes_first():
    cache = AnswerCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_value_put_again_is_the_latest():
    cache = AnswerCache(2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        cache.put(key, value)
    assert (cache.get("a"), cache.get("b"), len(cache)) == (3, None, 2)


def test_cache_without_room_keeps_nothing():
    cache = AnswerCache(0)
    cache.put("a", 1)
    assert (cache.get("a"), len(cache)) == (None, 0)


def test_threads_get_what_belongs_to_their_key():
    cache = AnswerCache(5)

    def work(number):
        for step in range(300):
            key = (number * step) % 11
            if (found := cache.get(key)) is not None:
                assert found == key * 2
            cache.put(key, key * 2)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(cache) == 5
