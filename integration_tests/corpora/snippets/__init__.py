"""Everyday PyTorch code in small pieces: what people write around and inside their models."""

from __future__ import annotations

from integration_tests.corpora.snippets._attention import attention
from integration_tests.corpora.snippets._collection import Snippet
from integration_tests.corpora.snippets._data import data
from integration_tests.corpora.snippets._layers import layers
from integration_tests.corpora.snippets._losses import losses
from integration_tests.corpora.snippets._page import PAGE, listed_breaks, page, reason_to_break
from integration_tests.corpora.snippets._plumbing import plumbing
from integration_tests.corpora.snippets._sampling import sampling
from integration_tests.corpora.snippets._tensors import tensors
from integration_tests.corpora.snippets._training import training

__all__ = ["COLLECTIONS", "PAGE", "SNIPPETS", "Snippet", "listed_breaks", "page", "reason_to_break"]

COLLECTIONS = (losses, attention, layers, sampling, data, training, plumbing, tensors)
SNIPPETS = {snippet.name: snippet for collection in COLLECTIONS for snippet in collection.snippets}
