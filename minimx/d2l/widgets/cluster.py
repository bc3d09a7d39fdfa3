"""`d2l.ClusterExplorer`: how a step of training scales on a cluster, with a slider for each figure.

It asks `parallel.simulate.data_parallel`, and adds nothing but a picture of the step, a table from one device to thousands, and a memory
for what was asked before. Nothing is approximated beyond what that does: where all devices do the same at the same time it plays one for
all, which gives the same figures, and so an answer takes some milliseconds whatever the number of devices; up to `SHOWN` devices the
picture has all of them. Book: chapter 11.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...base import ArgumentError, UnknownNameError, shown
from ...fields import converted
from ...parallel.simulate import ALGORITHMS, Device, Link, Model, Prediction, TaskGraph, data_parallel, model
from ...profiler import Timeline, timeline
from ...profiler.layout import in_words
from ...profiler.svg import escape
from .page import Widget, ipywidgets, table, text_table

COUNTS = tuple(2**power for power in range(13))  # of devices: 1 to 4,096
ROWS = COUNTS[::2]  # of the table
BATCHES = tuple(2**power for power in range(11))  # of a device
SHOWN = 4  # devices that the picture shows one by one
KINDS = ("forward", "backward", "update", "add", "push", "pull")  # of a model's tasks, in whose names these words stand
TITLES = ("devices", "batch", "step", "communication alone", "speed-up", "efficiency")
Bar = tuple[str, str, float, float]


@dataclass(frozen=True)
class Choice:
    """What the sliders say. `batch`: of each device; `bandwidth` in bytes a second, `latency` in seconds."""

    devices: int = 64
    batch: int = 64
    bandwidth: float = 3.125e9
    latency: float = 3e-5
    algorithm: str = "ring"
    overlap: bool = True

    def checked(self) -> Choice:
        """The same with values of the right types. **Raises** ArgumentError that names the one that cannot be."""
        kinds = {"devices": "int", "batch": "int", "bandwidth": "float", "latency": "float", "overlap": "bool"}
        right = replace(
            self, **{name: converted("ClusterExplorer", name, kind, getattr(self, name)) for name, kind in kinds.items()}
        )
        if not 1 <= right.devices <= COUNTS[-1]:
            raise ArgumentError(f"ClusterExplorer: devices is {right.devices}; a number from 1 to {COUNTS[-1]} is wanted")
        if right.batch < 1:
            raise ArgumentError(f"ClusterExplorer: batch is {right.batch}; each device needs at least 1 sample")
        if right.algorithm not in ALGORITHMS:
            ways = ", ".join(map(repr, ALGORITHMS))
            raise UnknownNameError(f"ClusterExplorer: there is no algorithm {shown(right.algorithm)}; choose one of {ways}")
        Link(right.bandwidth, right.latency)  # which says what is wrong with these
        return right


class ClusterExplorer(Widget):
    """Predictions for a step of training on many devices, to be changed with sliders.

    **Args** `source`: the name of a model ("mlp", "lenet", "alexnet", "vgg16", "resnet18", "resnet50"), a Model, or the graph of a step of
    yours (`simulate.recorded(..., batch=64)`). `device`: its figures, as for `simulate.data_parallel`. `choice`: where the sliders stand at
    first: `devices` (1 to 4,096), `batch` of each device, `bandwidth` (bytes a second) and `latency` (seconds) of its link, `algorithm`
    ("ring", "tree", "parameter_server", or "hierarchical", with that link for each node of 8 and NVLink inside), `overlap`: send gradients
    while others are still computed. **Returns** an object that a notebook shows, with sliders where there are some (`controls`), and that
    `print` writes as a table. **Raises** ArgumentError.

    >>> from minimx import d2l
    >>> cluster = d2l.ClusterExplorer("vgg16", devices=16, bandwidth=12.5e9)
    >>> print(cluster.predict(overlap=False))
    16 devices, ring: 847 ms a step, 89.2 ms of it communication alone; 14.3 times as fast as one
    """

    def __init__(
        self, source: str | Model | TaskGraph = "resnet50", *, device: str | Device | None = None, **choice: Any
    ) -> None:
        self.source: Model | TaskGraph = model(source) if isinstance(source, str) else source
        if not isinstance(self.source, (Model, TaskGraph)):
            raise ArgumentError(f"ClusterExplorer: {shown(source)} is neither a model's name, nor a Model, nor a TaskGraph")
        if isinstance(self.source, TaskGraph):
            if self.source.batch is None:
                raise ArgumentError(
                    "ClusterExplorer: for how many samples is the graph? Record it with a batch: recorded(..., batch=64)"
                )
            choice.setdefault("batch", self.source.batch)
        self.device = device
        self.choice = Choice()
        self.set(**choice)
        self._predicted = functools.lru_cache(maxsize=4096)(self._predict)
        self.predict()  # which says what is wrong with a graph

    def set(self, **choice: Any) -> None:
        """Move sliders. **Raises** ArgumentError, and changes nothing then."""
        self.choice = self._changed(choice)

    def _changed(self, choice: dict[str, Any]) -> Choice:
        unknown = next((name for name in choice if name not in asdict(self.choice)), None)
        if unknown is not None:
            raise ArgumentError(f"ClusterExplorer: there is no slider {unknown!r}; there are {', '.join(asdict(self.choice))}")
        return replace(self.choice, **choice).checked()

    # ---- figures

    def predict(self, **choice: Any) -> Prediction:
        """The prediction for where the sliders stand, or would stand with `choice`. **Raises** ArgumentError."""
        return self._predicted(self._changed(choice))

    def _predict(self, choice: Choice, whole: bool | None = None) -> Prediction:
        link = Link(choice.bandwidth, choice.latency)
        links: dict[str, Any] = {"link": "NVLink V100", "network": link} if choice.algorithm == "hierarchical" else {"link": link}
        return data_parallel(
            self.source, choice.devices, choice.algorithm, batch=choice.batch * choice.devices, device=self.device, overlap=choice.overlap,
            whole=whole, **links,
        )  # fmt: skip

    def curve(self) -> list[Prediction]:
        """From 1 to 4,096 devices, each with its batch, all else as the sliders say."""
        return [self.predict(devices=count) for count in sorted({*ROWS, self.choice.devices})]

    def _lines(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{each.devices:,}" + " ←" * (each.devices == self.choice.devices), f"{each.batch:,}", in_words(each.step_time),
                in_words(each.communication), f"{each.speed_up:,.3g}" if each.speed_up < 100 else f"{each.speed_up:,.0f}",
                f"{each.efficiency:.0%}",
            )
            for each in self.curve()
        ]  # fmt: skip

    # ---- pictures

    def bars(self) -> list[Bar]:
        """The step as (lane, name, start, end): of each device, where they are few, else of one that stands for all.

        The tasks of a model are named after their kind, and those that follow one another are one bar.
        """
        few = self.choice.devices <= SHOWN
        prediction = self._predict(self.choice, whole=True) if few and self.choice.devices > 1 else self.predict()
        found = [(lane or "device", *rest) for lane, *rest in prediction.result.bars()]
        return _joined(found) if isinstance(self.source, Model) else found  # type: ignore[return-value, arg-type]  # of four parts

    def timeline(self) -> Timeline:
        """The step as a picture with tables."""
        return timeline(self.bars(), title=self._title(), start=0.0, end=self.predict().step_time)

    def _title(self) -> str:
        choice = self.choice
        who = "all of them" if choice.devices <= SHOWN else "one of them, and its link"
        name = f"{self.source.name}, " if isinstance(self.source, Model) else ""
        how = f"{choice.algorithm}, {'overlapping' if choice.overlap else 'one after the other'}"
        return f"{name}{choice.devices:,} device{'s' * (choice.devices > 1)}, {how}: {who}"

    def describe(self) -> str:
        """Where the sliders stand, and what follows, in words."""
        choice, found = self.choice, self.predict()
        return (
            f"{choice.devices:,} device{'s' * (choice.devices > 1)} with {choice.batch:,} samples each, over links of "
            f"{choice.bandwidth / 1e9:.4g} GB/s and {in_words(choice.latency)}, {choice.algorithm}, overlap "
            f"{'on' if choice.overlap else 'off'}: a step takes {in_words(found.step_time)}, of which "
            f"{in_words(found.communication)} are communication alone; {found.speed_up:,.4g} times as fast as one device, "
            f"efficiency {found.efficiency:.0%}."
        )

    def html(self) -> str:
        """The page for where the sliders stand."""
        return (
            f'<div class="mx-cluster">\n<p role="status">{escape(self.describe())}</p>\n'
            f'<div style="display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start">\n'
            f'<div style="flex: 1 1 480px">{self.timeline()._repr_svg_()}</div>\n'
            f'<div style="flex: 0 0 auto">{table("The same from 1 to 4,096 devices", TITLES, self._lines())}</div>\n</div>\n</div>\n'
        )

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"<ClusterExplorer: {self.describe()}>"

    def __str__(self) -> str:
        return f"{self.describe()}\n{text_table(TITLES, self._lines())}"

    def controls(self) -> Any:
        """A slider for each figure, and the page, which follows them."""
        widgets = ipywidgets()
        choice = self.choice
        style = {"style": {"description_width": "9em"}, "continuous_update": False}

        def steps(text: str, options: tuple[int, ...], value: int) -> Any:
            listed = sorted({*options, value})
            return widgets.SelectionSlider(
                options=[(f"{each:,}", each) for each in listed], value=value, description=text, **style
            )

        def scale(text: str, value: float, low: int, high: int) -> Any:
            return widgets.FloatLogSlider(value=value, base=10, min=low, max=high, step=0.05, description=text, **style)

        sliders = {
            "devices": steps("devices", COUNTS, choice.devices),
            "batch": steps("samples a device", BATCHES, choice.batch),
            "bandwidth": scale("GB/s", choice.bandwidth / 1e9, -2, 3),
            "latency": scale("latency in µs", choice.latency * 1e6, -1, 4),
            "algorithm": widgets.Dropdown(
                options=ALGORITHMS, value=choice.algorithm, description="algorithm", style=style["style"]
            ),
            "overlap": widgets.Checkbox(value=choice.overlap, description="send while computing", style=style["style"]),
        }
        page = widgets.HTML(value=self.html())

        def show(_: Any) -> None:
            said = {name: slider.value for name, slider in sliders.items()}
            try:
                self.set(**{**said, "bandwidth": said["bandwidth"] * 1e9, "latency": said["latency"] * 1e-6})
                page.value = self.html()
            except ArgumentError as error:  # a combination that cannot be: the page says why
                page.value = f"<p role='alert'>{escape(str(error))}</p>"

        for slider in sliders.values():
            slider.observe(show, "value")
        return widgets.VBox([widgets.HBox([*sliders.values()], layout=widgets.Layout(flex_flow="row wrap")), page])


def _joined(bars: list[Bar]) -> list[Bar]:
    """Bars named after their kind; those of one kind that follow one another in a lane are one."""
    found: list[Bar] = []
    last: dict[str, int] = {}  # of each lane the last bar
    for lane, name, start, end in sorted(bars, key=lambda bar: bar[2]):
        kind = next((kind for kind in KINDS if kind in name.split()), "gradients")  # what travels is called after its parameters
        number = last.get(lane)
        if number is not None and found[number][1] == kind and start <= found[number][3] * (1 + 1e-9):
            found[number] = (lane, kind, found[number][2], max(end, found[number][3]))
        else:
            last[lane] = len(found)
            found.append((lane, kind, start, end))
    return found


__all__ = ["ClusterExplorer"]
