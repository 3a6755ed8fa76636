"""The zoo: real architectures at full depth and small width, random weights, deterministic, under a
second each."""

from __future__ import annotations

from integration_tests.corpora.models._families import FAMILIES
from integration_tests.corpora.models._language import LANGUAGE
from integration_tests.corpora.models._libraries import LIBRARIES
from integration_tests.corpora.models._plain import PLAIN
from integration_tests.corpora.models._sample import Item
from integration_tests.corpora.models._signal import SIGNAL
from integration_tests.corpora.models._training import make_training, train
from integration_tests.support.arguments import Call

__all__ = ["FAMILIES", "LIBRARIES", "SHALLOW", "ZOO", "Call", "Item", "make_training", "train"]

ZOO = {item.name: item for item in (*LANGUAGE, *SIGNAL, *PLAIN)}
SHALLOW = {name: item.in_shallow() for name, item in ZOO.items()}
