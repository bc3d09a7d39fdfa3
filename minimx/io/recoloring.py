"""Colours of images of bytes, changed as MXNet's iterators do: by factors, along the principal directions, in hue, lightness, saturation.

Each step gives bytes again, rounded and kept in their range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.image_color import PRINCIPAL, brightened, contrasted, saturated

__all__ = ["changed_hls", "factored", "lit"]

Pixels = np.ndarray[Any, Any]

HALF_TURN = 180  # the hues of a byte: 2 degrees are 1


def as_bytes(values: Pixels) -> Pixels:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def factored(pixels: Pixels, what: int, factor: float) -> Pixels:
    """Brightness (0), contrast (1) or saturation (2) times `factor`; opacity stays."""
    change = (brightened, contrasted, saturated)[what]
    result = as_bytes(change(np, pixels[:, :, :3].astype(np.float32), factor))
    return np.concatenate([result, pixels[:, :, 3:]], axis=2) if pixels.shape[2] > 3 else result


def lit(pixels: Pixels, alpha: Pixels) -> Pixels:
    """A colour added: `alpha` along the three principal directions of the colours in ImageNet."""
    if pixels.shape[2] < 3:
        return pixels
    result = pixels.copy()
    result[:, :, :3] = np.clip(np.trunc(pixels[:, :, :3] + PRINCIPAL @ alpha), 0, 255)
    return result


def changed_hls(pixels: Pixels, hue: int, lightness: int, saturation: int) -> Pixels:
    """Whole numbers added to hue, in steps of 2 degrees, lightness and saturation, of 255. A hue does not go beyond its end."""
    if pixels.shape[2] < 3:
        return pixels
    hls = to_hls(pixels[:, :, :3]).astype(np.int32) + np.array([hue, lightness, saturation])
    result = pixels.copy()
    result[:, :, :3] = from_hls(np.clip(hls, 0, [HALF_TURN, 255, 255]))
    return result


def to_hls(pixels: Pixels) -> Pixels:
    """Hue (0 to 180), lightness and saturation (0 to 255) of red, green, blue."""
    colors = pixels / np.float32(255)
    red, green, blue = np.moveaxis(colors, 2, 0)
    high, low = colors.max(axis=2), colors.min(axis=2)
    span = high - low
    light = (high + low) / 2
    whole = np.where(light < 0.5, high + low, 2 - high - low)
    saturation = np.divide(span, whole, out=np.zeros_like(span), where=span > 0)
    turn = np.where(high == red, green - blue, np.where(high == green, blue - red, red - green))
    turn = np.divide(turn, span, out=np.zeros_like(span), where=span > 0)
    hue = turn * 30 + np.where(high == red, 0, np.where(high == green, 60, 120))
    hue = np.rint(np.where(hue < 0, hue + HALF_TURN, hue) * (span > 0))
    return np.stack([np.where(hue >= HALF_TURN, hue - HALF_TURN, hue), np.rint(light * 255), np.rint(saturation * 255)], axis=2)


def from_hls(hls: Pixels) -> Pixels:
    """Red, green, blue of hue, lightness and saturation as `to_hls` has them."""
    hue, light, saturation = np.moveaxis(hls * np.array([1 / 30, 1 / 255, 1 / 255], np.float32), 2, 0)
    high = np.where(light <= 0.5, light * (1 + saturation), light + saturation - light * saturation)
    low = 2 * light - high
    channels = []
    for own in (0, 2, 4):  # the hue of the channel, in sixths of a turn
        away = np.abs((hue + 3 - own) % 6 - 3)
        channels.append(low + (high - low) * np.clip(2 - away, 0, 1))
    return as_bytes(np.stack(channels, axis=2) * 255)
