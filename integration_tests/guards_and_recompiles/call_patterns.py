"""Call patterns with the number of entries that they compile: a row is
`name: (setup, body, calls, entries)`.

`calls` are expressions that call `f`, in order; between two of them a statement may stand after a
`;`. The setup makes globals over those of `facts.PRELUDE`.
"""

from __future__ import annotations

Pattern = tuple[str, str, tuple[str, ...], int]
OF = "torch.ones"

# fmt: off
PATTERNS: dict[str, Pattern] = {
    # nothing changes
    "the same tensor": ("", "return x + 1", ("f(x)",) * 5, 1),
    "other values": ("", "return x + 1", tuple(f"f(x + {i})" for i in range(5)), 1),
    "the same tensor twice": ("", "def f(a, b): return a + b", ("f(x, x)", "f(x, x)"), 1),
    "two tensors": ("", "def f(a, b): return a + b", ("f(x, x + 1)", "f(x + 2, x)"), 1),
    "keywords in another order": ("", "def f(a, b): return a + b",
        ("f(a=x, b=x + 1)", "f(b=x, a=x + 1)", "f(x + 2, x)"), 1),
    "a default given and left": ("", "def f(a, k=2): return a * k", ("f(x)", "f(x, 2)", "f(x, k=2)"), 1),
    "new lists of one length": ("", "def f(a, l): return a * l[0]", ("f(x, [2])", "f(x, [2])"), 1),
    "new dicts with the same keys": ("", "def f(a, d): return a * d['k']",
        ("f(x, {'k': 2})", "f(x, {'k': 2, 'z': 1})"), 1),
    "new objects of one class": ("", "def f(a, o): return o.scale(a)", ("f(x, Base())", "f(x, Base())"), 1),
    "an unread argument": ("", "def f(a, o): return a + 1", ("f(x, 1)", "f(x, 'a')", "f(x, None)", "f(x, x)"), 1),
    "an argument that is only passed on": ("", "def f(a, o): return a + 1, o", ("f(x, 1)", "f(x, [2])", "f(x, x)"), 1),
    "strings that are stored": ("d = {}", "def f(a, s): d['k'] = s; return a + 1", ("f(x, 'a')", "f(x, 'b')"), 1),
    "a list that grows by append": ("l = []", "l.append(x.sum()); return x + 1", ("f(x)",) * 8, 1),
    "a list that grows by extend": ("l = []", "l.extend([x, x]); return x + 1", ("f(x)",) * 8, 1),
    "a list that grows by +=": ("k = []", "def f(a, l): l += [a]; return a + 1", ("f(x, k)",) * 8, 1),
    "a deque that grows": ("l = collections.deque()", "l.append(x); return x + 1", ("f(x)",) * 8, 1),
    "a list of an attribute that grows": ("o = Plain(l=[])", "o.l.append(x); return x + 1", ("f(x)",) * 8, 1),
    "a list that grows across a break": ("l = []", "l.append(1); stator.graph_break(); l.append(2); return x + 1",
        ("f(x)",) * 8, 2),
    "a dict that is filled": ("d = {}", "def f(a, k): d[k] = a; return a + 1", ("f(x, 'a')", "f(x, 'a')"), 1),
    "an attribute that is overwritten": ("o = Plain(a=1)", "o.a = x; return x + 1", ("f(x)",) * 4, 1),
    "a global that is overwritten": ("G = 0", "def f(x):\n global G\n G = x\n return x + 1", ("f(x)",) * 4, 1),
    "a buffer that is updated": ("m = torch.nn.BatchNorm1d(3)", "return m(x)", ("f(x)",) * 4, 1),
    "a parameter that is updated": ("m = torch.nn.Linear(3, 3)", "return m(x)",
        ("f(x); m.weight.data.add_(1)",) * 4, 1),
    "a parameter that is replaced by an equal one": (
        "m = torch.nn.Linear(3, 3)", "return m(x)", ("f(x); m.weight = torch.nn.Parameter(torch.ones(3, 3))",) * 4, 1),
    "modules that take turns, equal in kind": (
        "m, n = torch.nn.ReLU(), torch.nn.ReLU()", "def f(a, m): return m(a)", ("f(x, m)", "f(x, n)"), 1),
    "closures that are made anew": (
        "def make(k):\n return lambda a: a * k", "def f(a, g): return g(a)", ("f(x, make(2))", "f(x, make(2))"), 1),
    # alternation: both entries stay
    "two dtypes in turn": ("", "return x + 1", ("f(x)", "f(x.double())") * 3, 2),
    "two devices' worth of ranks": ("", "return x + 1", ("f(x)", "f(x[0])") * 3, 2),
    "grad and no grad": ("", "return x + 1", ("f(x)", "f(x.clone().requires_grad_())") * 3, 2),
    "two flags in turn": ("", "def f(a, on): return a if on else -a", ("f(x, True)", "f(x, False)") * 3, 2),
    "train and eval": ("m = torch.nn.Dropout(0.5)", "return m(x)", ("f(x); m.eval()", "f(x); m.train()") * 3, 2),
    "grad mode in turn": ("", "return x + 1",
        ("f(x); torch._C._set_grad_enabled(False)", "f(x); torch._C._set_grad_enabled(True)") * 2, 2),
    "two strings in turn": ("", "def f(a, s): return a * len(s)", ("f(x, 'a')", "f(x, 'bb')") * 3, 2),
    "None and a tensor": ("", "def f(a, b): return a if b is None else a + b", ("f(x, None)", "f(x, x + 1)") * 3, 2),
    "one object and two": ("", "def f(a, b): return a * (a is b)", ("f(x, x)", "f(x, x + 1)") * 3, 2),
    "two functions in turn": ("", "def f(a, g): return g(a)", ("f(x, double)", "f(x, triple)") * 3, 2),
    "two classes in turn": ("class B(Base): factor = 5", "def f(a, o): return o.scale(a)",
        ("f(x, Base())", "f(x, B())") * 3, 2),
    "a hook added and removed": ("m = torch.nn.ReLU()", "return m(x)", (
        "f(x); h = m.register_forward_hook(lambda m, a, r: r * 5)", "f(x); h.remove()") * 2, 3),
    # shapes and numbers
    "one changed size": ("", "return x + 1", ("f(x)", *(f"f({OF}({n}, 3))" for n in (4, 5, 6, 7))), 2),
    "two changed sizes, one after the other": ("", "return x + 1",
        ("f(x)", f"f({OF}(4, 3))", f"f({OF}(4, 5))", f"f({OF}(6, 7))"), 3),
    "two changed sizes at once": ("", "return x + 1",
        ("f(x)", f"f({OF}(4, 5))", f"f({OF}(6, 7))", f"f({OF}(8, 9))"), 2),
    "size one is another program": ("", "return x + 1",
        ("f(x)", f"f({OF}(1, 3))", f"f({OF}(4, 3))", f"f({OF}(5, 3))"), 3),
    "a branch on a size": ("", "return x + 1 if x.shape[0] > 4 else x - 1",
        ("f(x)", *(f"f({OF}({n}, 3))" for n in (3, 5, 4, 6))), 3),
    "dynamic from the start": ("OPTIONS = {'dynamic': True}", "return x + 1",
        ("f(x)", *(f"f({OF}({n}, 3))" for n in (4, 5))), 1),
    "static for good": ("OPTIONS = {'dynamic': False}", "return x + 1",
        ("f(x)", *(f"f({OF}({n}, 3))" for n in (4, 5))), 3),
    "a size marked dynamic": ("mark = torch._dynamo.decorators.mark_dynamic", "return x + 1",
        tuple(f"y = {OF}({n}, 3); mark(y, 0); f(y)" for n in (2, 3, 4)), 1),
    "an int that changes": ("", "def f(a, n): return a * n", tuple(f"f(x, {n})" for n in (2, 3, 4, 5)), 2),
    "an int that becomes 0 and 1": ("", "def f(a, n): return a * n", tuple(f"f(x, {n})" for n in (2, 3, 0, 1)), 2),
    "a float that changes": ("", "def f(a, n): return a * n", tuple(f"f(x, {n})" for n in (0.5, 1.5, 2.5, 3.5)), 2),
    "a bool is no int": ("", "def f(a, n): return a * n", ("f(x, 2)", "f(x, True)", "f(x, 2)"), 2),
    "an int attribute that counts": ("o = Plain(n=0)", "o.n += 1; return x * o.n", ("f(x)",) * 6, 2),
    "a counter that is not used in the graph": ("o = Plain(n=0)", "o.n += 1; return x + 1", ("f(x)",) * 6, 2),
    "lengths of lists": ("", "def f(a, l): return a * len(l)", ("f(x, [1])", "f(x, [1, 2])", "f(x, [1])"), 2),
    "a slice with a changing bound": ("", "def f(a, n): return a[:n]",
        tuple(f"f({OF}(9), {n})" for n in (2, 3, 4, 5)), 2),
    # breaks
    "one break": ("", "x = x + 1; stator.graph_break(); return x * 2", ("f(x)",) * 3, 2),
    "two breaks": ("", "x = x + 1; stator.graph_break(); x = x * 2; stator.graph_break(); return x - 1",
        ("f(x)",) * 3, 3),
    "a break in a loop": ("", "def f(x):\n for _ in range(6):\n  x = x + 1; stator.graph_break()\n return x",
        ("f(x)",) * 3, 3),
    "a break five calls deep": (
        "def a(x): return b(x) + 1\ndef b(x): return c(x) * 2\ndef c(x): stator.graph_break(); return x + 3",
        "return a(x + 1)", ("f(x)",) * 3, 2),
    "a branch on data": ("", "return x + 1 if x.sum() > 0 else x - 1", ("f(x)", "f(-x)", "f(x)"), 3),
    "an exception that is raised and handled": (
        "", "def f(x):\n try:\n  raise ValueError\n except ValueError:\n  return x + 1", ("f(x)",) * 3, 1),
    "the recompile limit": (
        "OPTIONS = {'options': {'recompile_limit': 2}}", "def f(a, s): return a * len(s)",
        ("f(x, 'a')", "f(x, 'bb')", "f(x, 'ccc')", "f(x, 'dddd')"), 2),
    "objects that die": ("", "def f(a, o): return a * (o is G)", ("G = o = Plain(); f(x, o)",) * 3, 1),
}
# fmt: on
