"""The modules of stator, by their names: programs have modules such as `stator_experiments`."""

PACKAGES = frozenset(
    {
        "stator",
        "stator_backends",
        "stator_subgraphs",
        "stator_variables",
        "stator_guards",
        "stator_bytecode",
    }
)


def is_own_module(name: str) -> bool:
    """Return True for the name of a module of these packages."""
    return name.partition(".")[0] in PACKAGES
