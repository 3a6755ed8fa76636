"""Programs about objects that write down what they are asked: `a`, `b` and `c` are such, of three
values in a row.

And about containers and numbers of classes that write down which methods of theirs C calls: `a` is
one.
"""

from __future__ import annotations

OF_OBJECTS = """
sum([a, b]) ; sum([a, b], 1) ; min(a, b) ; max(a, b, 3) ; min([a, b], key=lambda v: v) ; sorted([b, a])
sorted([b, a, c], reverse=True) ; [b, a].sort() ; any([a, b]) ; all([a, b]) ; a in [b, a] ; a in (1, 2) ; a in {1: 2}
a in {1, 2} ; {a: 1} ; {a, b} ; {a: 1}[b] ; {a: 1}.get(2) ; {1: 2}.get(a) ; {1: 2}.pop(a, None)
{1: 2}.setdefault(a, 3) ; [1, 2].index(a) ; [1, 2].count(a) ; [a, b].index(2) ; [a, b].count(1) ; [a, b].remove(1)
(a, b) == (1, 2) ; [a] == [1] ; [a] < [b] ; (a, b) < (a, c) ; {a} == {1} ; {a: 1} == {1: 1} ; {1: a} == {1: b}
[1, 2, 3][a] ; (1, 2, 3)[a] ; "abc"[a] ; range(10)[a] ; [1, 2, 3][a:] ; [1, 2, 3][:b] ; [1, 2, 3][::a] ; slice(a, b)
range(a) ; range(a, b) ; list(range(a)) ; [1] * a ; a * [1] ; (1,) * a ; "x" * a ; b"x" * a ; bytearray(a) ; bytes(a)
[1, 2].insert(a, 3) ; [1, 2, 3].pop(a) ; "abc".center(a) ; "abc".replace("a", "b", a) ; "a b".split(" ", a)
"abc".find("b", a) ; "abc".rjust(a) ; "%d" % a ; "%s" % a ; "%r" % a ; "%f" % a ; "%5s|%x" % (a, b) ; f"{a}"
f"{a!r}" ; f"{a:>3}" ; "{} {!r}".format(a, b) ; str(a) ; repr(a) ; format(a) ; format(a, "x") ; str([a])
repr({a: b}) ; int(a) ; float(a) ; complex(a) ; bool(a) ; hash(a) ; len(a) ; abs(a) ; round(a) ; round(a, 1)
divmod(a, b) ; divmod(a, 2) ; divmod(7, a) ; pow(a, b) ; pow(2, a) ; pow(a, b, 3) ; chr(a) ; bin(a) ; oct(a) ; hex(a)
ascii(a) ; iter(a) ; list(a) ; tuple(a) ; set(a) ; dict(a) ; list(reversed(a)) ; [*a] ; max(a) ; enumerate(a, b)
list(enumerate(a)) ; list(zip(a, b)) ; list(map(a, [1])) ; list(filter(a, [1])) ; list(filter(None, [a, b])) ; not a
a and b ; a or b ; (1 if a else 2) ; a if b else c ; a == b ; a != b ; a < b ; a == 1 ; 1 == a ; 1 < a ; a is b
a < b < c ; isinstance(a, int) ; callable(a) ; a() ; a(b, k=1) ; a[0] ; a[0:1] ; a[b] ; b in a ; -a ; ~a ; +a ; a + b
a + 1 ; 1 + a ; 1.5 + a ; "x" + a ; a - b ; a @ b ; a // b ; a ** b ; 2 ** a ; a & b ; 1 ; a ; a << 1 ; a % 2 ; 7 % a
math.floor(a) ; math.ceil(a) ; math.trunc(a) ; math.sqrt(a) ; math.sin(a) ; math.gcd(a, 4) ; math.factorial(a)
math.comb(4, a) ; math.prod([a, b]) ; math.fsum([a, b]) ; math.isnan(a) ; math.pow(a, b) ; math.log(a) ; math.log2(a)
math.hypot(a, b) ; math.dist([a], [b]) ; math.isclose(a, b) ; math.copysign(a, -1) ; math.ldexp(1.0, a) ; math.perm(a)
math.isqrt(a) ; math.atan2(a, b) ; math.fmod(a, 2) ; math.degrees(a) ; operator.index(a) ; operator.add(a, b)
operator.iadd(a, b) ; operator.contains(a, 1) ; operator.countOf(a, 1) ; operator.indexOf(a, 1)
operator.countOf([1, 2], a) ; operator.length_hint(a) ; operator.truth(a) ; operator.not_(a)
operator.itemgetter(0)(a) ; operator.itemgetter(a)([1, 2]) ; operator.methodcaller("keys")(a) ; operator.getitem(a, 0)
operator.eq(a, b) ; operator.concat([1], [a]) ; operator.mod(a, b) ; operator.matmul(a, b) ; operator.inv(a)
operator.pow(a, b) ; operator.setitem(a, 0, 1) ; operator.delitem(a, 0) ; operator.is_(a, b)
operator.call(a) if hasattr(operator, "call") else 0 ; functools.reduce(operator.add, [a, b, c])
functools.reduce(max, a) ; functools.partial(a)(1)
functools.cmp_to_key(lambda p, q: p.v - q.v)(a) < functools.cmp_to_key(lambda p, q: p.v - q.v)(b)
sorted([b, a], key=functools.cmp_to_key(lambda p, q: p.v - q.v)) ; bisect.bisect([1, 2, 3], a)
bisect.bisect_left([a, b], 2) ; bisect.insort([a, c], b) ; heapq.heapify([b, a]) ; heapq.heappush([a], b)
heapq.nsmallest(1, [b, a]) ; heapq.nlargest(2, [b, a, c]) ; heapq.heapreplace([a, b], c)
heapq.heappushpop([a, b], c) ; list(heapq.merge([a], [b])) ; collections.deque([a, b]).index(2)
collections.deque([a, b]).count(1) ; collections.deque([a, b]).remove(1) ; a in collections.deque([b, a])
collections.deque([1, 2]).rotate(a) ; collections.deque([1, 2, 3], a) ; collections.Counter([a, b, a])
collections.Counter({1: a}) + collections.Counter({1: b}) ; collections.Counter({1: a}).most_common(1)
collections.Counter({1: a, 2: b}).total() ; collections.OrderedDict({a: 1})
collections.OrderedDict({1: 2}).move_to_end(a) ; collections.defaultdict(a)[1] ; collections.ChainMap({1: 2})[a]
collections.deque([a]) == collections.deque([b]) ; collections.deque([a]) * b
collections.namedtuple("T", "x")(a) == (1,) ; collections.UserList([a]).count(1) ; collections.UserDict({1: 2})[a]
list(itertools.islice([1, 2, 3], a)) ; list(itertools.repeat(1, a)) ; list(itertools.accumulate([a, b, c]))
list(itertools.accumulate([a, b], max)) ; list(itertools.compress([1, 2], [a, b])) ; list(itertools.takewhile(a, [1]))
list(itertools.filterfalse(None, [a])) ; list(itertools.groupby([a, a, b]))
[k for k, g in itertools.groupby([a, 1, b])] ; list(itertools.islice(itertools.count(a), 2))
list(itertools.islice(itertools.count(1, a), 2)) ; list(itertools.product([1], repeat=a))
list(itertools.combinations([1, 2], a)) ; list(itertools.starmap(a, [(1,)])) ; list(itertools.chain(a, b))
list(itertools.zip_longest(a, [1])) ; list(itertools.pairwise(a)) ; list(itertools.dropwhile(a, [1])) ; {1, 2} & {a}
{1, 2} ; {a} ; {1, 2} - {a} ; {a} ^ {1} ; {a, b} <= {1, 2, 3} ; {1}.intersection([a, b]) ; {1}.issuperset([a])
{1}.isdisjoint([b]) ; {1}.union([a]) ; {a}.discard(1) ; {1}.discard(a) ; {1}.add(a) ; {1}.remove(a)
frozenset([a]) == frozenset([1]) ; {1: 2}.keys() & {a} ; a in {1: 2}.keys() ; a in {1: 2}.values()
(a, 2) in {1: 2}.items() ; {1: 2}.keys() == {a} ; {1: 2}.items() == {(a, 2)} ; dict.fromkeys([a, b]) ; dict([(a, 1)])
{**{}, 1: a} ; {1: 2} ; {a: 3} ; {1: 2}.update({a: 1}) ; {1: 2}.update([(a, 1)]) ; hash((a, b)) ; hash(frozenset([a]))
[a, b].extend(a) ; [1, 2].__contains__(a) ; (1, a).__eq__((1, 1)) ; [1, 2, 3].index(2, a) ; (1, 2, 3).index(2, a)
"abc".startswith("b", a) ; "a".join([]) ; "abc".zfill(a) ; "a\tb".expandtabs(a) ; (255).to_bytes(a, "big")
int("11", a) ; int.from_bytes(a, "big") ; round(2.5, a) ; round(1234, a) ; "abc"[a:b] ; bytes([a, b]) ; bytearray([a])
bytes(3)[a] ; a in b"abc" ; a in "abc" ; a in range(5) ; range(5).index(a) ; range(5).count(a) ; memoryview(b"abc")[a]
copy.copy(a) ; copy.deepcopy([a]) ; type(a) ; isinstance(a, collections.abc.Iterable)
isinstance(a, collections.abc.Hashable) ; random.Random(3).choice(a) ; random.Random(3).randrange(b)
random.Random(3).sample([1, 2, 3], a) ; statistics.mean([a, b]) ; vars(a) and 1 ; getattr(a, "zz", 3)
hasattr(a, "zz") ; print(a, end="", file=io.StringIO()) ; next(iter(a)) ; next(iter(a), 3) ; [i for i in a]
[x for x in [a, b] if x] ; any(x == 1 for x in [a, b]) ; dict(zip(a, a)) ; sum(x * x for x in [a, b])
(lambda *p, **k: p)(*a) ; a.keys() ; {**a} ; dict(**a) ; (lambda **k: k)(**a) ; dict(a, z=1) ; {}.update(a)
"%(a)s" % a ; "{0[0]}".format(a) ; "{a}".format_map(a) ; string.Template("$a").substitute(a)
[1, 2, 3].__getitem__(a) ; abs(-a) ; bool(not a) ; int(a) + 1 ; torch.Size([1, 2])[a] ; torch.ones(3)[a]
torch.ones(a) ; torch.ones(3) * 1 if a else 0 ; torch.zeros(2, a) ; x.view(a, -1) ; x.sum(a - a) ; x + a ; a + x
x * a ; x == a ; x[a:] ; x.reshape([a, 3]) ; torch.full((2,), a) ; torch.tensor(a) ; torch.tensor([a, b])
torch.arange(a) ; {1, 2} | {a} ; {a: 3} | {1: 2} ; {1: 2} | {a: 3} ; 1 | a ; {1: 2}.keys() | {a}
"""

OF_CONTAINERS = {
    "list": """
a + [1] ; [1] + a ; a * 2 ; 2 * a ; a == [1,2,3] ; [1,2,3] == a ; a < [2] ; [0] < a ; a.copy() ; a[0] ; a[1:]
a[::-1] ; a.index(2) ; a.count(2) ; a.append(3) ; a.pop() ; a.extend(a) ; a.insert(0, 1) ; a.remove(2) ; a.reverse()
a.sort() ; a.clear() ; a.__iadd__([1]) ; a.__imul__(2) ; list(a) ; tuple(a) ; set(a) ; sorted(a) ; reversed(a) and 1
[*a] ; len(a) ; bool(a) ; str(a) ; repr(a) ; f'{a}' ; '%s' % a ; sum(a) ; max(a) ; [].extend(a) ; [1] + [*a]
[1, 2].__iadd__(a) ; operator.setitem([1, 2], slice(0, 1), a) ; ','.join(a) ; dict.fromkeys(a)
collections.deque(a) ; collections.Counter(a) ; {1}.union(a) ; {1}.issubset(a) ; zip(a, a) and list(zip(a, a))
list(enumerate(a)) ; list(map(str, a)) ; (lambda *p: p)(*a) ; 2 in a ; a in [a] ; [a] == [[1,2,3]] ; hash(tuple(a))
torch.Size(a) ; torch.ones(a[0]) ; torch.tensor(a) ; any(a) ; all(a) ; min(a, key=str) ; random.Random(1).choice(a)
functools.reduce(operator.add, a) ; heapq.heapify(a) ; bisect.bisect(a, 2) ; math.prod(a)
itertools.chain(a, a) and list(itertools.chain(a, a)) ; list(itertools.islice(a, 2)) ; list(itertools.product(a, a))
'x'.join(str(v) for v in a) ; bytes(a) ; '{0[0]}'.format(a) ; a != [1] ; a >= a ; a.__contains__(3)
torch.stack([x] * len(a)) ; [i for i in a] ; (p := a) ; a or 1 ; not a
""",
    "tuple": """
a + (1,) ; (1,) + a ; a * 2 ; a == (1,2,3) ; (1,2,3) == a ; a < (2,) ; a[0] ; a[1:] ; a.index(2) ; a.count(2)
list(a) ; tuple(a) ; [*a] ; len(a) ; bool(a) ; str(a) ; hash(a) ; {a: 1} ; {(1,2,3): 1}.get(a) ; '%s %s %s' % a
(lambda *p: p)(*a) ; sum(a) ; sorted(a) ; 2 in a ; torch.Size(a) ; torch.zeros(a) ; a in {(1,2,3): 4} ; max(a)
operator.add((), a) ; () + a ; a.__getitem__(slice(0, 2)) ; a != (1,) ; set(a) ; dict.fromkeys(a)
list(reversed(a)) ; repr([a]) ; list(zip(a, a)) ; (p := a) ; not a
""",
    "dict": """
a[1] ; a.get(1) ; a.get(9) ; 1 in a ; len(a) ; bool(a) ; list(a) ; dict(a) ; {**a} ; {**{}, **a} ; a ; {5: 6}
{5: 6}.update(a) ; a.update({5: 6}) ; a.__ior__({7: 8}) ; a.copy() ; a == {1: 2, 3: 4} ; {1: 2, 3: 4} == a
list(a.items()) ; list(a.keys()) ; list(a.values()) ; a.pop(1) ; a.popitem() ; a.setdefault(9, 1)
a.setdefault(1, 1) ; a.clear() ; str(a) ; repr(a) ; f'{a}' ; sorted(a) ; max(a)
(lambda **k: k)(**{str(q): 1 for q in a}) ; collections.OrderedDict(a) ; collections.Counter(a)
collections.ChainMap(a)[1] ; collections.ChainMap({}, a).get(3) ; dict.fromkeys(a) ; a.__setitem__(1, 5)
a.__delitem__(1) ; a.keys() & {1} ; a.items() == {1: 2, 3: 4}.items() ; '{0[1]}'.format(a) ; '%(x)s' % {'x': a}
list(reversed(a)) ; a.keys() == {1, 3} ; 2 in a.values() ; set(a) ; {1}.union(a) ; a != {} ; not a ; sum(a)
dict(a, z=1) ; dict([*a.items()]) ; collections.defaultdict(int, a)[1] ; types.MappingProxyType(a)[1] ; list(zip(a, a))
any(a) ; tuple(a) ; a | {5: 6} ; {5: 6} | a
""",
    "set": """
1 in a ; len(a) ; bool(a) ; a ; {9} ; a & {1} ; {1} & a ; a - {1} ; {1} - a ; a ^ {1} ; a <= {1,2,3} ; {1} <= a
a == {1,2,3} ; {1,2,3} == a ; a.union([1]) ; {1}.union(a) ; {1}.intersection(a) ; {1}.issubset(a)
{1}.issuperset(a) ; {1}.isdisjoint(a) ; a.isdisjoint([9]) ; a.add(9) ; a.discard(1) ; a.remove(1) ; a.pop()
a.update([9]) ; {1}.update(a) ; a.copy() ; list(a) ; sorted(a) ; set(a) ; frozenset(a) ; str(a) ; a.__ior__({9})
a.__iand__({1}) ; {1}.__ior__(a) ; sum(a) ; not a ; {1: 2}.keys() & a ; a.intersection_update([1])
a.difference([1]) ; a.clear() ; a != {1} ; a < {1,2,3,4} ; a | {9} ; {9} | a
""",
    "frozenset": """
1 in a ; len(a) ; a ; {9} ; a & {1} ; a == {1,2} ; hash(a) ; {a: 1} ; {frozenset({1, 2}): 1}.get(a)
a in {frozenset({1,2})} ; frozenset(a) ; set(a) ; a.union([1]) ; sorted(a) ; a.copy() ; a - {1} ; bool(a) ; str(a)
a <= {1,2} ; a | {9} ; {9} | a
""",
    "str": """
a + 'x' ; 'x' + a ; a * 2 ; a == 'abc' ; 'abc' == a ; a < 'b' ; a[0] ; a[1:] ; 'b' in a ; a in 'xabc' ; len(a)
bool(a) ; str(a) ; repr(a) ; f'{a}' ; f'{a:>5}' ; f'{a!r}' ; '%s' % a ; '%r' % a ; '{}'.format(a) ; '-'.join([a, a])
a.join(['x', 'y']) ; a.upper() ; a.split('b') ; a.replace('a', 'x') ; 'xabc'.replace(a, 'z') ; a.startswith('a')
'abcd'.startswith(a) ; 'abcd'.find(a) ; 'abcd'.split(a) ; hash(a) ; {a: 1} ; {'abc': 1}[a] ; {'abc': 1}.get(a)
a in {'abc': 1} ; a in ['abc'] ; ['abc'].index(a) ; getattr(torch, a, 3) ; hasattr(torch, a) ; list(a) ; sorted(a)
max(a) ; int(a, 16) ; a % () ; a.encode() ; string.Template(a).substitute() ; a.format() ; a.strip() ; a != 'x'
set(a) ; tuple(a) ; a.__contains__('a') ; not a ; [*a] ; (lambda **k: k)(**{a: 1}) ; type(a)('x') ; a.center(9)
a.partition('b') ; operator.attrgetter('upper')(a)() ; 'x'.join(a) ; ''.join(a) ; dict.fromkeys(a)
collections.Counter(a) ; print(a, file=io.StringIO()) ; str.upper(a) ; a.zfill(5)
""",
    "int": """
a + 1 ; 1 + a ; a * 2 ; a - 1 ; a / 2 ; a // 2 ; a % 2 ; a ** 2 ; 2 ** a ; -a ; abs(a) ; ~a ; a << 1 ; 1 << a
a & 3 ; a ; 1 ; a ^ 1 ; a == 2 ; 2 == a ; a < 3 ; 1 < a ; bool(a) ; not a ; int(a) ; float(a) ; complex(a) ; str(a)
repr(a) ; f'{a}' ; f'{a:04d}' ; '%d' % a ; '%s' % a ; '{}'.format(a) ; hash(a) ; {a: 1} ; {2: 1}[a] ; [1,2,3][a]
[1,2,3][:a] ; range(a) ; list(range(a)) ; [1] * a ; 'x' * a ; divmod(a, 2) ; divmod(7, a) ; pow(a, 2) ; pow(a, 2, 3)
round(a) ; round(2.345, a) ; math.sqrt(a) ; math.floor(a) ; math.gcd(a, 4) ; math.factorial(a) ; sum([a, a])
max(a, 1) ; sorted([a, 1]) ; a in [2] ; a in range(5) ; chr(a) ; hex(a) ; bin(a) ; operator.index(a)
operator.add(a, 1) ; x + a ; x * a ; a * x ; x[a] ; x[:a] ; torch.ones(a) ; torch.full((2,), a) ; torch.tensor(a)
x.sum(a - 2) ; bytes(a) ; a.bit_length() ; a.to_bytes(2, 'big') ; isinstance(a, int) ; list(itertools.repeat(1, a))
list(itertools.islice([1,2,3], a)) ; random.Random(a).random() ; a != 1 ; 1.5 + a ; 1.5 * a ; 1j + a ; a + 1.5
a if a else 1 ; a and 1 ; a or 1 ; float.__add__(1.5, a) ; enumerate([1], a) and list(enumerate([1], a))
collections.deque([1,2,3], a) ; statistics.mean([a, a]) ; math.prod([a, a]) ; math.isclose(a, 2) ; a | 1
""",
    "float": """
a + 1 ; 1 + a ; a * 2 ; a / 2 ; a // 1 ; a % 2 ; a ** 2 ; -a ; abs(a) ; a == 2.5 ; 2.5 == a ; a < 3 ; bool(a)
int(a) ; float(a) ; str(a) ; f'{a:.1f}' ; '%.1f' % a ; hash(a) ; round(a) ; round(a, 1) ; math.floor(a)
math.ceil(a) ; math.sqrt(a) ; math.isnan(a) ; sum([a, a]) ; max(a, 1) ; x + a ; x * a ; a * x ; torch.full((2,), a)
torch.tensor(a) ; divmod(a, 2) ; complex(a) ; math.fsum([a]) ; a.is_integer() ; math.trunc(a) ; a.hex() ; not a
math.prod([a, 2])
""",
    "bytes": """
a + b'x' ; b'x' + a ; a * 2 ; a == b'abc' ; b'abc' == a ; a[0] ; a[1:] ; 97 in a ; b'a' in a ; len(a) ; bytes(a)
list(a) ; a.decode() ; hash(a) ; {b'abc': 1}[a] ; str(a) ; b'-'.join([a, a]) ; int.from_bytes(a, 'big')
bytearray(a) ; sorted(a) ; a.upper() ; b'%s' % a ; bool(a) ; repr(a)
""",
    "deque": """
a.append(1) ; a.pop() ; a.popleft() ; a.extend([1]) ; a.rotate(1) ; a[0] ; 2 in a ; len(a) ; list(a)
a == collections.deque([1,2,3]) ; collections.deque(a) ; a + collections.deque([1]) ; collections.deque([1]) + a
a * 2 ; a.copy() ; a.count(1) ; a.index(2) ; str(a) ; list(reversed(a)) ; sorted(a) ; sum(a) ; [*a] ; bool(a)
a.remove(1) ; a.insert(0, 1) ; a.__iadd__([1]) ; a < collections.deque([2]) ; a.extendleft([1]) ; a.appendleft(1)
a.clear() ; a.reverse() ; [].extend(a) ; max(a)
""",
    "OrderedDict": """
a[1] ; a.get(1) ; 1 in a ; list(a) ; dict(a) ; {**a} ; a ; {5: 6} ; a.update({5: 6}) ; {5: 6}.update(a) ; a.copy()
a == {1: 2, 3: 4} ; a == collections.OrderedDict({1: 2, 3: 4}) ; {1: 2, 3: 4} == a ; list(a.items())
list(a.keys()) ; list(a.values()) ; a.pop(1) ; a.popitem() ; a.popitem(last=False) ; a.move_to_end(1)
a.setdefault(9, 1) ; str(a) ; len(a) ; list(reversed(a)) ; a.clear() ; collections.OrderedDict(a)
a.__ior__({7: 8}) ; sorted(a) ; bool(a) ; a.__setitem__(1, 5) ; a.__delitem__(1) ; a | {5: 6} ; {5: 6} | a
""",
}
