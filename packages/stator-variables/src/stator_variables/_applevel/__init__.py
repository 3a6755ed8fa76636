"""Builtins that CPython writes in C but could be Python: run by the Machine like the user's own
code.

Each module declares itself with `__app_level__ = True`: its frames are not shown, and its globals
need no guards. A name would be no evidence, as packages of programs may have it too."""
