"""Things to play with: the engine's queue step by step, and a cluster with sliders.

Each is an object that a notebook shows. Where a person sits before it and ipywidgets is installed it has buttons and sliders; everywhere
else (a page of the site, a notebook that a program runs, a screen reader) it is a picture and tables that tell the same (page.py).

recording.py notes what the engine does, story.py tells it step by step, chart.py draws it, stepper.py is what the user has;
cluster.py asks parallel/simulate. Book: chapters 7 and 11.
"""

from .cluster import ClusterExplorer
from .stepper import EngineStepper

__all__ = ["ClusterExplorer", "EngineStepper"]
