"""Share of public models and training steps that runs compiled, under stator and torch.compile.

``python -m integration_tests.benchmarks.compiled_share [NAME...]`` measures and prints; ``--list``
names the workloads.

Both compilers get AOTAutograd around a compiler that counts (``_count``), so that writes, views
and backward passes are as a real compiler gets them. In the third call torch's profiler counts the
operators that run in no compiled graph (``_profile``). Each measurement is made in a process of
its own (``child``) and compared with what plain PyTorch gives. Some workloads are timed under
Inductor, too (``_inductor``).
"""
