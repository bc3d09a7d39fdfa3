"""Figures of devices and links, by name: those of their makers' data sheets, which are to be doubted like these. Book: chapter 11."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ...base import UnknownNameError, shown
from .machine import Device, Link

Kind = TypeVar("Kind")

#: Devices by name. FLOP/s are those of float32 without tensor cores, of which half is what networks of convolutions are seen to reach; a
#: kernel is launched in about 5 µs. NVIDIA: data sheets "Tesla P100" (2016), "Tesla V100" (2018), "A100" (2021, 40 GB SXM), "H100" (2023,
#: SXM). "core": a core of a server at 3 GHz with two 8-lane fused multiply-adds a cycle, and its share of four channels of DDR4-2666.
DEVICES: dict[str, Device] = {
    "core": Device(flops=96e9, bandwidth=20e9, overhead=2e-5, efficiency=0.5),
    "P100": Device(flops=10.6e12, bandwidth=732e9, overhead=5e-6, efficiency=0.5),
    "V100": Device(flops=15.7e12, bandwidth=900e9, overhead=5e-6, efficiency=0.5),
    "A100": Device(flops=19.5e12, bandwidth=1555e9, overhead=5e-6, efficiency=0.5),
    "H100": Device(flops=67e12, bandwidth=3.35e12, overhead=5e-6, efficiency=0.5),
}

#: Links by name, in one direction. PCIe: 16 lanes at 8 and 16 GT/s, of which about 0.8 carry data (PCI-SIG, base specifications 3.0, 4.0).
#: NVLink: all links of a GPU together, half of the sum of both directions in the data sheets of V100, A100, H100. Ethernet and InfiniBand
#: (HDR): the rate of the line; latencies as programs see them through TCP, and through verbs.
LINKS: dict[str, Link] = {
    "PCIe 3.0": Link(12e9, 1e-5),
    "PCIe 4.0": Link(24e9, 1e-5),
    "NVLink V100": Link(150e9, 5e-6),
    "NVLink A100": Link(300e9, 5e-6),
    "NVLink H100": Link(450e9, 5e-6),
    "Ethernet 1G": Link(0.125e9, 5e-5),
    "Ethernet 10G": Link(1.25e9, 5e-5),
    "Ethernet 25G": Link(3.125e9, 3e-5),
    "Ethernet 100G": Link(12.5e9, 2e-5),
    "InfiniBand HDR": Link(25e9, 2e-6),
}


def device_called(name: str | Device) -> Device:
    """A device from DEVICES by its name, or the device itself. **Raises** UnknownNameError."""
    return name if isinstance(name, Device) else _known("device", name, DEVICES)


def link_called(name: str | Link) -> Link:
    """A link from LINKS by its name, or the link itself. **Raises** UnknownNameError."""
    return name if isinstance(name, Link) else _known("link", name, LINKS)


def _known(kind: str, name: str, table: Mapping[str, Kind]) -> Kind:
    if name not in table:
        raise UnknownNameError(f"simulate: there is no {kind} {shown(name)}; choose one of {', '.join(map(repr, table))}")
    return table[name]


__all__ = ["DEVICES", "LINKS", "device_called", "link_called"]
