"""Programs written after public reports of what torch.compile compiles too often or not at all.

`programs.py` has the programs, `python -m integration_tests.corpora.reported` measures them beside
torch.compile: graphs over a series of calls, and a steady call with a backend that returns the
graph as it is.
"""
