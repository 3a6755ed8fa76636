"""Running the examples of a page: what they print is what the page shows."""

from __future__ import annotations

import pathlib
import sys

import pytest
import run_examples

PAGE = """
```python
import sys
x = 3
```

```python
print("a value of", x)
{more}
```

```text
{shown}
```
"""


def page(folder: pathlib.Path, shown: str, more: str = "") -> pathlib.Path:
    path = folder / "page.md"
    path.write_text(PAGE.format(shown=shown, more=more))
    return path


@pytest.fixture(autouse=True)
def _main(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.mark.parametrize("shown", ["a value of 3", "a ... of 3", "a value ..."])
def test_a_page_that_shows_what_it_prints(tmp_path: pathlib.Path, shown: str) -> None:
    run_examples.main(["--shown", str(page(tmp_path, shown))])


@pytest.mark.parametrize(
    ("shown", "more"),
    [
        ("a value of 4", ""),
        ("a value", ""),
        ("a value of 3", "print('more')"),
        ("a value of 3", "print('an error', file=sys.stderr)"),
    ],
)
def test_a_page_that_prints_something_else(tmp_path: pathlib.Path, shown: str, more: str) -> None:
    path = page(tmp_path, shown, more)
    with pytest.raises(AssertionError, match="a value of 3"):
        run_examples.main(["--shown", str(path)])
    run_examples.main([str(path)])


def test_pages_apart_do_not_see_each_other(tmp_path: pathlib.Path) -> None:
    seen = tmp_path / "seen.txt"
    pages = []
    for name in ("first", "second"):
        path = tmp_path / f"{name}.md"
        lines = [
            "import sys",
            f"with open({str(seen)!r}, 'a') as file:",
            "    file.write(f'{hasattr(sys, \"_seen\")} ')",
            "sys._seen = True",
        ]
        path.write_text("\n".join(["```python", *lines, "```", ""]))
        pages.append(path)

    run_examples.run_apart(pages, preload=())

    assert seen.read_text() == "False False "


def test_pages_apart_that_fail_are_named(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("```python\nassert True\n```\n")
    bad.write_text("```python\nassert False\n```\n")
    with pytest.raises(AssertionError) as error:
        run_examples.run_apart([bad, good], preload=())
    assert str(bad) in str(error.value)
    assert str(good) not in str(error.value)
    assert f'File "{bad}", line 2' in capfd.readouterr().err
