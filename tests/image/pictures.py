"""Images that the tests share: made by Pillow on the spot, or kept as the bytes whose pixels MXNet 1.9.1 was asked for."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

RAMP = (np.arange(12 * 16 * 3) * 37 % 256).reshape(12, 16, 3).astype(np.uint8)
LARGE = (np.arange(60 * 80 * 3) * 37 % 256).reshape(60, 80, 3).astype(np.uint8)

JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//"
    "2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAMABADASIAAhEBAxEB/8QA"
    "HwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkK"
    "FhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXG"
    "x8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAEC"
    "AxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOE"
    "hYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDT1iAJB07V"
    "zVs2LjHvXW+IuIDj0rjbU5uvxqsHlMJUm2dlTEulhHGJ/9k="
)
CMYK_JPEG = base64.b64decode(
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwANCQoLCggNCwoLDg4NDxMgFRMSEhMnHB4XIC4pMTAuKS0sMzpKPjM2RjcsLUBXQUZMTlJTUjI+WmFaUGBKUVJP/8AA"
    "FAgADAAQBEMRAE0RAFkRAEsRAP/EAB8AAAEFAQEBAQEBAAAAAAAAAAABAgMEBQYHCAkKC//EALUQAAIBAwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQci"
    "cRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqi"
    "o6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAA4EQwBNAFkASwAAPwDsLK3S1twSMYFX/F//AB7n6Vzf"
    "/CN/7H6V6dWB4i1URoyhq5Dw9/x/j60f8I3/ALH6UVt6rK0cB2nHFdf4v/49z9K9T+wW/wDcorzLX7iRpWBauQ8Pf8f4+tH2C3/uUV//2Q=="
)
# Every fifth row and column of them.
JPEG_PIXELS = [
    [[145, 198, 18], [209, 116, 13], [208, 39, 16], [153, 137, 24]],
    [[198, 211, 103], [214, 122, 97], [159, 39, 100], [96, 141, 110]],
    [[228, 213, 190], [193, 121, 187], [104, 39, 195], [49, 141, 204]],
]
JPEG_GREY = [[162, 132, 87, 129], [195, 147, 82, 124], [215, 150, 76, 121]]
CMYK_PIXELS = [
    [[126, 216, 1], [211, 121, 1], [217, 40, 1], [141, 152, 1]],
    [[190, 216, 101], [228, 121, 101], [170, 40, 101], [76, 152, 101]],
    [[225, 216, 202], [192, 121, 202], [98, 40, 202], [28, 152, 202]],
]
CMYK_GREY = [[165, 134, 88, 131], [195, 151, 86, 123], [217, 151, 76, 121]]


def file_of(pixels, kind="PNG", mode=None, **how):
    """The contents of an image file."""
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(np.asarray(pixels))
    buffer = io.BytesIO()
    (image if mode is None else image.convert(mode)).save(buffer, kind, **how)
    return buffer.getvalue()


def colour(number, size=(20, 24)):
    """An image of one colour, which tells its number: red is 10 times that."""
    return np.full((*size, 3), (10 * number, 100, 200), np.uint8)
