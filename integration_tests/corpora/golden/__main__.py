"""Write the printouts of all cases again."""

from __future__ import annotations

from integration_tests.corpora.golden import DIVIDER, FILES, RULE, cases, printout

if __name__ == "__main__":
    for path in FILES:
        path.write_text(
            RULE.join(program + DIVIDER + printout(program, path) for program, _ in cases(path))
        )
