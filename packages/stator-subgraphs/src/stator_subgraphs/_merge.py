"""Bodies that one operator calls with the same operands: branches that were lifted apart get one
list of inputs."""

from collections.abc import Sequence

from stator_variables import GraphValue

from stator_subgraphs._captured_graph import Body


def merge(bodies: Sequence[Body]) -> tuple[GraphValue, ...]:
    """Every body takes, after its explicit arguments, what any of them lifts; gives those values of
    the graph around."""
    union = {traced.node: traced for body in bodies for traced in body.lifted}
    for body in bodies:
        _take(body, tuple(union.values()))
    return tuple(union.values())


def _take(body: Body, operands: tuple[GraphValue, ...]) -> None:
    tracer = body.tracer
    known = dict(
        zip(
            (traced.node for traced in body.lifted),
            tracer.placeholders[tracer.explicit :],
            strict=True,
        )
    )
    wanted = [
        known.get(traced.node) or tracer.placeholder(traced.node.name, traced.example).node
        for traced in operands
    ]

    written = {tracer.placeholders[position] for position in body.written}
    aliased = [(output, tracer.placeholders[position]) for output, position in body.aliased]
    tracer.arrange(wanted)
    position_of = {node: position for position, node in enumerate(tracer.placeholders)}
    body.lifted, tracer.outer = operands, list(operands)
    body.written = tuple(sorted(position_of[node] for node in written))
    body.aliased = tuple((output, position_of[node]) for output, node in aliased)
    body.module.recompile()
