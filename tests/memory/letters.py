"""A model for tests: quick, and as bad as it is told to be."""

import numpy as np

from memory.indexing import embedding_text
from memory.llm.embeddings import EmbeddingFailed


class Letters:
    """A model that counts letters, refuses some texts, or is down."""

    def __init__(self, model="letters", dimension=8):
        self.model, self.dimension = model, dimension
        self.asked = []
        self.refused, self.is_down = set(), False
        self.meanwhile = lambda: None

    def embed(self, texts, *, seconds=None):
        self.asked.append(list(texts))
        self.meanwhile()
        if self.is_down:
            raise EmbeddingFailed("The model says no.")
        rows = [[text.count(chr(97 + n)) + 0.5 for n in range(self.dimension)] for text in texts]
        vectors = np.array(rows, dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[[text.partition(". ")[0] in self.refused for text in texts]] = 0
        return vectors

    def vector_of(self, memory):
        """Return what is kept of a memory's text."""
        return type(self)(self.model, self.dimension).embed([embedding_text(memory)]).astype("<f2")
