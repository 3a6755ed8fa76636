"""Functions of other people's libraries, compared on random arguments."""
