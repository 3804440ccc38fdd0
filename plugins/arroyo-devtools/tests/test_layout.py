"""Where boxes, links and labels go: whatever the graph, nothing covers anything else."""

from itertools import combinations

from arroyo_devtools.drawing.layers import derive_layers
from arroyo_devtools.drawing.layout import LABEL_HEIGHT, Box, Link, Point, curve_point, lay_out
from hypothesis import given, settings
from hypothesis import strategies as st


@st.composite
def graphs(draw):
    """Boxes in topological order and links that lead on, several between the same two included."""
    count = draw(st.integers(1, 12))
    boxes = [
        Box(width=draw(st.integers(60, 300)), height=draw(st.integers(30, 200)), reach=draw(st.integers(0, 25)))
        for _ in range(count)
    ]
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=16)) if pairs else []
    return boxes, [Link(source=a, target=b, label_width=draw(st.sampled_from([0, 40, 180]))) for a, b in chosen]


def sampled(route):
    """Points along a route, curves included."""
    for at, (start, end) in enumerate(zip(route.points, route.points[1:], strict=False)):
        for step in range(21):
            share = step / 20
            if at % 2:
                yield curve_point(start, end, share)
            else:
                yield Point(start.x, start.y + (end.y - start.y) * share)


def rectangles(boxes, layout):
    return [
        (corner.x, corner.y, corner.x + box.width, corner.y + box.height)
        for corner, box in zip(layout.boxes, boxes, strict=True)
    ]


def labels(links, layout):
    for link, route in zip(links, layout.routes, strict=True):
        if link.label_width:
            half, high = link.label_width / 2, LABEL_HEIGHT / 2
            yield (route.label.x - half, route.label.y - high, route.label.x + half, route.label.y + high)


def overlaps(one, other):
    slack = 1e-6
    return (
        one[0] < other[2] - slack
        and other[0] < one[2] - slack
        and one[1] < other[3] - slack
        and other[1] < one[3] - slack
    )


@settings(max_examples=60)
@given(graphs())
def test_nothing_covers_anything_else(graph):
    boxes, links = graph
    layout = lay_out(boxes, links)
    places = rectangles(boxes, layout)
    assert not any(overlaps(one, other) for one, other in combinations(places, 2))
    for route in layout.routes:
        assert not any(
            left + 1e-6 < point.x < right - 1e-6 and top + 1e-6 < point.y < bottom - 1e-6
            for point in sampled(route)
            for left, top, right, bottom in places
        )
    shown = list(labels(links, layout))
    assert not any(overlaps(one, other) for one, other in combinations(shown, 2))
    assert not any(overlaps(label, place) for label in shown for place in places)


@settings(max_examples=60)
@given(graphs())
def test_everything_is_within_the_picture_and_links_lead_down(graph):
    boxes, links = graph
    layout = lay_out(boxes, links)
    places = rectangles(boxes, layout)
    for left, top, right, bottom in [*places, *labels(links, layout)]:
        assert -1e-6 <= left < right <= layout.width + 1e-6
        assert -1e-6 <= top < bottom <= layout.height + 1e-6
    for link, route in zip(links, layout.routes, strict=True):
        heights = [point.y for point in route.points]
        assert heights == sorted(heights)
        left, _, right, bottom = places[link.source]
        assert (heights[0], left <= route.points[0].x <= right) == (bottom, True)
        left, top, right, _ = places[link.target]
        assert (heights[-1], left <= route.points[-1].x <= right) == (top, True)


def test_a_line_of_boxes_is_straight():
    layout = lay_out([Box(width=100, height=40)] * 3, [Link(source=0, target=1), Link(source=1, target=2)])
    assert {corner.x for corner in layout.boxes} == {0.0}
    assert all(len({point.x for point in route.points}) == 1 for route in layout.routes)


def test_links_are_untangled():
    # 0 and 1 feed 3 and 2: side by side as given they would cross.
    layering = derive_layers(4, [(0, 3), (1, 2)])
    (upper, lower) = layering.layers
    assert [{0: 3, 1: 2}[box] for box in upper] == list(lower)


def test_a_source_stands_right_above_its_reader():
    layering = derive_layers(5, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert [sorted(layer) for layer in layering.layers] == [[0], [1], [2, 3], [4]]
