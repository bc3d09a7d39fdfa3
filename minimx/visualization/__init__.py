"""`mx.viz`, also `mx.visualization`: a graph as a table (`print_summary`) and as a picture (`plot_network`)."""

from .network import NetworkPlot, plot_network
from .summary import print_summary

__all__ = ["NetworkPlot", "plot_network", "print_summary"]
