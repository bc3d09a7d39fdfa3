"""The layout of graphs in layers: on small graphs whose best picture is known, and on random ones for what must always hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from minimx.visualization.layered import ROOM, arrange


def test_nothing_and_one():
    assert arrange([], []).layers == 0
    assert arrange([30.0], []) == ([(15.0, 0.0)], [], 30.0, 1)


def test_a_chain_is_straight():
    layout = arrange([10.0, 40.0, 20.0], [(0, 1), (1, 2)])
    assert layout.places == [(20.0, 0.0), (20.0, 1.0), (20.0, 2.0)]
    assert layout.paths == [[(20.0, 0.0), (20.0, 1.0)], [(20.0, 1.0), (20.0, 2.0)]]


def test_an_input_stands_right_below_its_user():
    layout = arrange([10.0] * 4, [(0, 1), (1, 3), (2, 3)])
    assert [layer for _, layer in layout.places] == [0, 1, 1, 2]


def test_an_edge_over_layers_goes_round_what_is_between():
    layout = arrange([40.0] * 3, [(0, 1), (1, 2), (0, 2)])
    path = layout.paths[2]
    assert [layer for _, layer in path] == [0, 1, 2]
    assert abs(path[1][0] - layout.places[1][0]) >= 20 + ROOM


def test_crossings_are_removed():
    places = arrange([10.0] * 6, [(0, 5), (1, 4), (2, 3)]).places
    order = [np.argsort([places[node][0] for node in nodes]).tolist() for nodes in ((0, 1, 2), (5, 4, 3))]
    assert order[0] == order[1]


@pytest.mark.parametrize("seed", range(8))
def test_boxes_never_overlap_and_edges_go_up(seed):
    rng = np.random.default_rng(seed)
    widths = rng.uniform(20, 200, 25).tolist()
    edges = [(int(rng.integers(0, end)), end) for end in range(1, 25) for _ in range(rng.integers(1, 4))]
    layout = arrange(widths, edges)
    rows: dict[float, list[tuple[float, float]]] = {}
    for (x, layer), width in zip(layout.places, widths):
        rows.setdefault(layer, []).append((x, width))
        assert -1e-6 <= x - width / 2 <= x + width / 2 <= layout.width + 1e-6
    for row in rows.values():
        for (x, width), (next_x, next_width) in itertools.pairwise(sorted(row)):
            assert next_x - x >= (width + next_width) / 2 + ROOM - 1e-6
    for (start, end), path in zip(edges, layout.paths):
        assert (path[0], path[-1]) == (layout.places[start], layout.places[end])
        assert [layer for _, layer in path] == list(np.arange(path[0][1], path[-1][1] + 1))
