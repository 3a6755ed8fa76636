"""CUDA graphs: a tree of recordings that share one memory pool.

A graph is called normally first (warm-up), then recorded, then replayed. Its results lie in the
pool, at the addresses of the recording. What the pool may reuse depends on which results of the
calls before are still alive, so recordings form a tree: the children of a recording are those of
the graphs that were called after it, each with the results that were alive then.

    call 1, call 2, ...     the path: recordings whose results may be alive
    a new step              the path ends; results that are alive are moved out of the pool

Start with `_tree`. `_device` is what it needs of an allocator and a stream; the tests have a fake
one that checks every address, `_cuda` the real one.
"""
