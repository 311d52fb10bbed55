"""A scripted embedder that raises on anything unscripted."""

import threading

import numpy as np

from parquetry.embed.base import Embedded


class ScriptedEmbedder:
    """Return vectors derived from the length of the texts; record every text that is requested."""

    id = "scripted@4"
    dimension = 4
    tokenizer_json = None
    price_per_million_tokens = 2.0

    def __init__(self):
        self.asked = []
        self.failures = []
        """errors raised one by one before anything is embedded"""
        self.refuses = ()
        self.gate = None
        """event that an embedding call waits for"""
        self.entered = threading.Event()
        self.vectors = lambda texts: np.array([[len(text), 1, 0, 0] for text in texts], np.float32).reshape(-1, 4)

    def embed(self, texts):
        self.entered.set()
        if self.gate is not None:
            assert self.gate.wait(20)
        if self.failures:
            raise self.failures.pop(0)
        self.asked.extend(texts)
        vectors = self.vectors(texts)
        refused = {index: "too-long: is too long" for index, text in enumerate(texts) if text in self.refuses}
        for index in refused:
            vectors[index] = 0
        return Embedded(vectors, 10 * len(texts), refused, [10] * len(texts))
