"""`mx.random`: the seed, and the functions of `nd.random` under a shorter name.

The keys that every draw begins with are in seeds.py, which `nd` needs, as this module needs `nd`.
"""

from __future__ import annotations

from .seeds import seed

__all__ = ["seed"]
