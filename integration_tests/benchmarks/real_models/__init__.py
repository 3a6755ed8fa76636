"""Call overhead of real models: what stator and torch.compile add to the graphs of public models
and training steps.

``python -m integration_tests.benchmarks.real_models [NAME...]`` measures and prints; ``--list``
names the workloads.

Both compilers get the same backend, which returns outputs cached from a real run (``_replay``), so
a call consists of guards, glue and effects. Each measurement is made in its own process with its
own empty caches (``_child``); processes of the two compilers alternate (``_processes``). The
figures of a process are minima over rounds (``_measure``), those of the table medians over
processes (``_table``).
"""
