"""Operations of the object space: what the interpreter does with values, as PyPy's object space
declares it.

Every module reaches them through the space that it is given as `t`. The modules that implement them
therefore need not import one another; `_standard_space.py` joins them. Arguments and results are
trackers unless stated otherwise. A result may be suspended (`stator_bytecode.Result`) wherever code
of the program may have to run first.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from stator_bytecode import Result
from stator_guards import Source

from stator_variables._tracker import Args, Kwargs, VariableTracker


class Operations(ABC):
    """Declares the operations; each is named as the function that implements it."""

    # -- values ------------------------------------------------------------------------------------
    @abstractmethod
    def wrap(self, real: object, source: Source) -> VariableTracker:
        """Return the tracker of an existing value, which is made when it is realized."""

    @abstractmethod
    def build(self, real: object, source: Source) -> VariableTracker:
        """Make that tracker, and guard what it relies on."""

    @abstractmethod
    def class_of(self, vt: VariableTracker) -> Result:
        """`type(vt)`"""

    @abstractmethod
    def truth(self, vt: VariableTracker) -> Result:
        """`bool(vt)`, as a Python bool."""

    @abstractmethod
    def key_of(self, vt: VariableTracker, use: str = "dict key") -> Result:
        """Return a hashable substitute for a value that is a key: equal exactly where the values
        are."""

    # -- slots of trackers -------------------------------------------------------------------------
    @abstractmethod
    def call_function(self, function: Any, args: Args, kwargs: Kwargs) -> Result:
        """Call a Python function."""

    @abstractmethod
    def call_builtin(self, function: Any, args: Args, kwargs: Kwargs) -> Result:
        """Call a function written in C."""

    @abstractmethod
    def construct(self, cls_vt: VariableTracker, args: Args, kwargs: Kwargs) -> Result:
        """Call a class."""

    @abstractmethod
    def read_method(self, vt: Any, name: str) -> Result:
        """Read an attribute of a bound method that its function has, or MISSING."""

    @abstractmethod
    def read_recipe(self, vt: Any, name: str) -> Result:
        """Read what an `operator.attrgetter` or the like was made with, or MISSING."""

    @abstractmethod
    def read_tensor(self, vt: Any, name: str) -> Result:
        """Read an attribute of a tensor, or MISSING."""

    @abstractmethod
    def iterate_tensor(self, vt: Any) -> Result:
        """`iter(vt)` for a tensor."""

    @abstractmethod
    def iterate_array(self, vt: VariableTracker) -> Result:
        """`iter(vt)` for an array, or MISSING."""

    @abstractmethod
    def length_of_tensor(self, vt: Any) -> Result:
        """`len(vt)` for a tensor."""

    @abstractmethod
    def record_item(self, vt: Any, key: VariableTracker) -> Result:
        """`vt[key]` for a tensor."""

    @abstractmethod
    def specialise(self, vt: Any) -> Any:
        """Return the value of a symbolic number, which is a constant from here on."""

    @abstractmethod
    def get_class_item(self, cls_vt: VariableTracker, key: VariableTracker) -> Result:
        """`cls[key]`"""

    @abstractmethod
    def operate_in_graph(self, function: Callable[..., Any], *operands: VariableTracker) -> Result:
        """Record an operator with a tensor or a symbolic number, or MISSING."""

    @abstractmethod
    def operate_on_arrays(self, function: Callable[..., Any], *operands: VariableTracker) -> Result:
        """Record an operator with an array of NumPy."""

    @abstractmethod
    def operate_on_constants(
        self, function: Callable[..., Any], *operands: VariableTracker
    ) -> Result:
        """Compute an operator of constants alone, or MISSING."""

    # -- calls -------------------------------------------------------------------------------------
    @abstractmethod
    def call(self, function: Any, args: Args, kwargs: Kwargs | None = None) -> Result:
        """`function(*args, **kwargs)`"""

    @abstractmethod
    def call_by_rule(self, function: Any, args: Args, kwargs: Kwargs) -> Result:
        """Call an existing Python function as a rule has it, or return MISSING: interpret it."""

    @abstractmethod
    def call_slot(
        self,
        vt: VariableTracker,
        name: str,
        args: Args,
        complaint: str,
        kwargs: dict[str, Any] | None = None,
    ) -> Result:
        """Call a special method of the class of `vt`; raise TypeError(`complaint`) without one."""

    @abstractmethod
    def fold(self, target: object, args: Args, kwargs: Kwargs) -> Result:
        """Call a pure function on constants; MISSING if it is not pure or they are not
        constants."""

    # -- attributes --------------------------------------------------------------------------------
    @abstractmethod
    def get_attribute(self, vt: VariableTracker, name: str) -> Result:
        """`vt.name`"""

    @abstractmethod
    def generic_get(self, vt: VariableTracker, name: str) -> Result:
        """`object.__getattribute__(vt, name)`, or MISSING."""

    @abstractmethod
    def super_attribute(self, vt: VariableTracker, name: str) -> Result:
        """`vt.name` for a super object (`super_getattro`)."""

    @abstractmethod
    def special(self, vt: VariableTracker, name: str) -> Result:
        """Look up a special method on the class and bind it (`_PyObject_LookupSpecial`), or
        MISSING."""

    @abstractmethod
    def bind(self, raw: object, source: Source, vt: VariableTracker, name: str) -> Result:
        """`raw.__get__(vt, type(vt))` for a raw class attribute."""

    # -- operators ---------------------------------------------------------------------------------
    @abstractmethod
    def binary(self, symbol: str, left: VariableTracker, right: VariableTracker) -> Result:
        """`left symbol right`; a symbol that ends in "=" is the in-place form."""

    @abstractmethod
    def compare(self, symbol: str, left: VariableTracker, right: VariableTracker) -> Result:
        """`left symbol right`"""

    @abstractmethod
    def equal(self, left: VariableTracker, right: VariableTracker) -> Result:
        """Identity, then `==`, as a Python bool (`PyObject_RichCompareBool`)."""

    @abstractmethod
    def identical(self, left: VariableTracker, right: VariableTracker, invert: bool) -> Result:
        """`left is right`, or `left is not right`."""

    @abstractmethod
    def contains(self, container: VariableTracker, item: VariableTracker, invert: bool) -> Result:
        """`item in container`, or `item not in container`."""

    @abstractmethod
    def index_of(self, key: VariableTracker) -> int | None:
        """`operator.index(key)`, as a Python int; None when it is no integer."""

    @abstractmethod
    def convert(self, value: object, conversion: str) -> Result:
        """`str(value)`, `repr(value)` or `ascii(value)`, by the letters of a format."""

    @abstractmethod
    def format_value(
        self, value: VariableTracker, conversion: str, spec: VariableTracker | None
    ) -> Result:
        """`format(convert(value), spec)`"""

    @abstractmethod
    def get_item(self, container: VariableTracker, key: VariableTracker) -> Result:
        """`container[key]`"""

    @abstractmethod
    def set_item(
        self, container: VariableTracker, key: VariableTracker, new: VariableTracker
    ) -> Result:
        """`container[key] = new`"""

    # -- iteration ---------------------------------------------------------------------------------
    @abstractmethod
    def get_iterator(self, vt: VariableTracker) -> Result:
        """`iter(vt)`"""

    @abstractmethod
    def next_value(self, it: Any) -> Result:
        """`next(it)`; NULL at the end."""

    @abstractmethod
    def drain(
        self, vt: VariableTracker, calls_len: bool = False, most: int = ..., error_text: str = ""
    ) -> Result:
        """Collect the items of an iterable, at most `most` of them, in a Python list."""

    @abstractmethod
    def for_each(
        self, iterable: VariableTracker, do: Callable[[Any], Any], calls_len: bool = False
    ) -> Result:
        """Run `do(item)`, which gives a result or None, for each item in turn."""

    # -- operators of torch ------------------------------------------------------------------------
    @abstractmethod
    def number_of_scalar(self, vt: VariableTracker) -> VariableTracker:
        """Return the number of Python that torch takes a number of NumPy for."""

    @abstractmethod
    def number_of_array(self, vt: VariableTracker) -> VariableTracker:
        """Return the number that an array is for operators; the array itself where it is none."""

    @abstractmethod
    def bound_of_slice(self, part: VariableTracker) -> VariableTracker:
        """Return a bound of a slice as a number, where it is a tensor."""

    @abstractmethod
    def call_with_generator(self, target: object, args: Args, kwargs: Kwargs) -> Result:
        """Draw what an operator gives from the program's generator `kwargs["generator"]`.

        MISSING for one of torch's own generators, which the graph draws from; `kwargs` is then
        left without it.
        """

    # -- dicts -------------------------------------------------------------------------------------
    @abstractmethod
    def lookup(self, d: Any, hashed: Any) -> Result:
        """Return the value under what `key_of` gave, or MISSING."""

    @abstractmethod
    def items(self, d: Any) -> list[tuple[Any, Any]]:
        """Return the (key, value) pairs in order."""
