"""Fields of exceptions, read and set as C does it: past the attributes of the class."""

from typing import Any


def exception_field(error: BaseException, name: str) -> Any:
    """`__traceback__`, `__context__`, `__cause__` or `args`, as `Objects/exceptions.c` keeps
    them."""
    return vars(BaseException)[name].__get__(error)


def set_exception_field(error: BaseException, name: str, value: Any) -> None:
    """Set such a field. Raises TypeError for a value that Python does not let it be."""
    vars(BaseException)[name].__set__(error, value)
