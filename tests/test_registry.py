"""`mx.registry`: families of classes that are chosen by name."""

from __future__ import annotations

import pytest

from minimx import initializer, optimizer, registry
from minimx.base import ArgumentError


class Animal:
    def __init__(self, legs=4):
        self.legs = legs


def test_a_family_of_ones_own():
    register, alias, create = (
        get(Animal, "animal") for get in (registry.get_register_func, registry.get_alias_func, registry.get_create_func)
    )

    @register
    @alias("bird", "fowl")
    class Goose(Animal):
        pass

    assert set(registry.get_registry(Animal)) == {"bird", "fowl", "goose"}
    assert create("goose").legs == 4
    assert create("Fowl", 2).legs == 2
    assert create(animal="bird", legs=3).legs == 3
    assert create('["goose", {"legs": 1}]').legs == 1
    assert create({"animal": "goose", "legs": 5}).legs == 5
    with pytest.raises(ArgumentError, match="no animal is called 'cow'; there are bird, fowl, goose"):
        create("cow")
    with pytest.raises(ArgumentError, match="only subclasses of Animal"):
        register(int)


def test_the_families_that_there_are():
    assert registry.get_registry(initializer.Initializer)["xavier"] is initializer.Xavier
    found = registry.get_registry(optimizer.Optimizer)
    found.clear()  # a copy
    assert optimizer.create(name="sgd").lr == optimizer.create("sgd").lr
