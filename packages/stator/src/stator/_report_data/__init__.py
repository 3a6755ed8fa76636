"""Parts of reports as values that JSON has: places, operators by line, memory, and what is merged
by place. `docs/reference/report.md` describes the fields."""
