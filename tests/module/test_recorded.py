"""`mx.mod` and `mx.model` against MXNet: parameters after some steps, outputs, scores, what callbacks are told."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import minimx as mx

from . import scenarios

RECORDED: dict[str, dict[str, Any]] = json.loads(scenarios.RECORD.read_text())


def test_all_scenarios_are_recorded() -> None:
    assert RECORDED.keys() == scenarios.SCENARIOS.keys()


@pytest.mark.parametrize("name", scenarios.SCENARIOS)
def test_equals_mxnet(name: str) -> None:
    found, wanted = scenarios.results(mx, name), RECORDED[name]
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        if isinstance(value, str):
            assert found[key] == value, key
        else:
            compare(key, found[key], value)


def compare(what: str, found: Any, wanted: Any) -> None:
    """Numbers in nested lists, equal but for float32's last digits after some steps of training."""
    if isinstance(wanted, list):
        assert len(found) == len(wanted), what
        for one, other in zip(found, wanted):
            compare(what, one, other)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=what)
