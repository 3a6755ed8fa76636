"""CPython's own test methods under `stator.compile`:
`python -m integration_tests.corpora.cpython --help`."""
