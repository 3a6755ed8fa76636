"""Operations of the object space: what the interpreter does with values, as PyPy's object space
declares it.

Every module reaches them through the space that it is given as `t`. The modules that implement them
therefore need not import one another; `_standard_space.py` joins them. Arguments and results are
trackers unless stated otherwise. A result may be suspended (`stator_bytecode.Result`) wherever code
of the program may have to run first.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from stator_guards import Source

from stator_variables._tracker import Kwargs


class Operations(ABC):
    """Declares the operations; each is named as the function that implements it."""

    # -- values ------------------------------------------------------------------------------------
    @abstractmethod
    def wrap(self, real: Any, source: Source) -> Any:
        """Return the tracker of an existing value, which is made when it is realized."""

    @abstractmethod
    def build(self, real: Any, source: Source) -> Any:
        """Make that tracker, and guard what it relies on."""

    @abstractmethod
    def class_of(self, vt: Any) -> Any:
        """`type(vt)`"""

    @abstractmethod
    def truth(self, vt: Any) -> Any:
        """`bool(vt)`, as a Python bool."""

    @abstractmethod
    def key_of(self, vt: Any) -> Any:
        """Return a hashable stand-in for a value that is a key: equal exactly where the values
        are."""

    # -- slots of trackers -------------------------------------------------------------------------
    @abstractmethod
    def call_function(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a Python function."""

    @abstractmethod
    def call_builtin(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function written in C."""

    @abstractmethod
    def construct(self, cls_vt: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call a class."""

    @abstractmethod
    def read_method(self, vt: Any, name: str) -> Any:
        """Read an attribute of a bound method that its function has, or MISSING."""

    @abstractmethod
    def read_recipe(self, vt: Any, name: str) -> Any:
        """Read what an `operator.attrgetter` or the like was made with, or MISSING."""

    @abstractmethod
    def read_tensor(self, vt: Any, name: str) -> Any:
        """Read an attribute of a tensor, or MISSING."""

    @abstractmethod
    def step(self, it: Any) -> Any:
        """Give the next item of a builtin iterator."""

    @abstractmethod
    def iterate_tensor(self, vt: Any) -> Any:
        """`iter(vt)` for a tensor."""

    @abstractmethod
    def iterate_array(self, vt: Any) -> Any:
        """`iter(vt)` for an array, or MISSING."""

    @abstractmethod
    def length_of_tensor(self, vt: Any) -> Any:
        """`len(vt)` for a tensor."""

    @abstractmethod
    def record_item(self, vt: Any, key: Any) -> Any:
        """`vt[key]` for a tensor."""

    @abstractmethod
    def get_class_item(self, cls_vt: Any, key: Any) -> Any:
        """`cls[key]`"""

    @abstractmethod
    def operate_in_graph(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Record an operator with a tensor or a symbolic number, or MISSING."""

    @abstractmethod
    def operate_on_arrays(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Record an operator with an array of NumPy."""

    @abstractmethod
    def operate_on_constants(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Compute an operator of constants alone, or MISSING."""

    # -- calls -------------------------------------------------------------------------------------
    @abstractmethod
    def call(self, function: Any, args: Sequence[Any], kwargs: Kwargs | None = None) -> Any:
        """`function(*args, **kwargs)`"""

    @abstractmethod
    def call_by_rule(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call an existing Python function as a rule has it, or return MISSING: interpret it."""

    @abstractmethod
    def call_slot(
        self,
        vt: Any,
        name: str,
        args: Sequence[Any],
        complaint: str,
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call a special method of the class of `vt`; raise TypeError(`complaint`) without one."""

    @abstractmethod
    def fold(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a pure function on constants; MISSING if it is not pure or they are not
        constants."""

    # -- attributes --------------------------------------------------------------------------------
    @abstractmethod
    def get_attribute(self, vt: Any, name: str) -> Any:
        """`vt.name`"""

    @abstractmethod
    def generic_get(self, vt: Any, name: str) -> Any:
        """`object.__getattribute__(vt, name)`, or MISSING."""

    @abstractmethod
    def super_attribute(self, vt: Any, name: str) -> Any:
        """`vt.name` for a super object (`super_getattro`)."""

    @abstractmethod
    def special(self, vt: Any, name: str) -> Any:
        """Look up a special method on the class and bind it (`_PyObject_LookupSpecial`), or
        MISSING."""

    @abstractmethod
    def bind(self, raw: Any, source: Source, vt: Any, name: str) -> Any:
        """`raw.__get__(vt, type(vt))` for a raw class attribute."""

    # -- operators ---------------------------------------------------------------------------------
    @abstractmethod
    def binary(self, symbol: str, left: Any, right: Any) -> Any:
        """`left symbol right`; a symbol that ends in "=" is the in-place form."""

    @abstractmethod
    def compare(self, symbol: str, left: Any, right: Any) -> Any:
        """`left symbol right`"""

    @abstractmethod
    def equal(self, left: Any, right: Any) -> Any:
        """Identity, then `==`, as a Python bool (`PyObject_RichCompareBool`)."""

    @abstractmethod
    def identical(self, left: Any, right: Any, invert: bool) -> Any:
        """`left is right`, or `left is not right`."""

    @abstractmethod
    def contains(self, container: Any, item: Any, invert: bool) -> Any:
        """`item in container`, or `item not in container`."""

    @abstractmethod
    def index_of(self, key: Any) -> int | None:
        """`operator.index(key)`, as a Python int; None when it is no integer."""

    @abstractmethod
    def convert(self, value: Any, conversion: str) -> Any:
        """`str(value)`, `repr(value)` or `ascii(value)`, by the letters of a format."""

    @abstractmethod
    def get_item(self, container: Any, key: Any) -> Any:
        """`container[key]`"""

    # -- iteration ---------------------------------------------------------------------------------
    @abstractmethod
    def get_iterator(self, vt: Any) -> Any:
        """`iter(vt)`"""

    @abstractmethod
    def next_value(self, it: Any) -> Any:
        """`next(it)`; NULL at the end."""

    @abstractmethod
    def drain(self, vt: Any, asks_length: bool = False, most: int = ..., saying: str = "") -> Any:
        """Collect the items of an iterable, at most `most` of them, in a Python list."""

    @abstractmethod
    def for_each(self, iterable: Any, do: Callable[[Any], Any], asks_length: bool = False) -> Any:
        """Run `do(item)`, which gives a result or None, for each item in turn."""

    # -- operators of torch ------------------------------------------------------------------------
    @abstractmethod
    def draw_ahead(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Draw what an operator gives from the program's generator `kwargs["generator"]`.

        MISSING for one of torch's own generators, which the graph draws from; `kwargs` is then
        left without it.
        """

    # -- dicts -------------------------------------------------------------------------------------
    @abstractmethod
    def lookup(self, d: Any, hashed: Any) -> Any:
        """Return the value under what `key_of` gave, or MISSING."""

    @abstractmethod
    def items(self, d: Any) -> list[tuple[Any, Any]]:
        """Return the (key, value) pairs in order."""
