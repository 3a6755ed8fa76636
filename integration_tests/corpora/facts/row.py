"""A row of the table: setup, body, change, unrelated."""

Row = tuple[str, str, str, str]
