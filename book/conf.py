"""The site of the book: Sphinx with myst-nb, which runs the chapters and shows what came out. `make book` builds it.

Nothing on a page comes from another server, so that it reads the same without a network. A picture without alternative text is a
warning, and `make book` makes warnings errors.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer
from sphinx.application import Sphinx
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).parent))
import api  # beside this file

project = "minimx"
author = "the minimx authors"
copyright = "the minimx authors, Apache License 2.0"
language = "en"

extensions = ["myst_nb", "sphinx.ext.mathjax"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_timeout = 300  # seconds a cell
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js = {}  # widgets need a kernel; the scripts would come from another server

# Formulas are drawn by MathJax from one file, out of a package that carries it.
mathjax_folder = find_spec("sphinx-mathjax-offline").submodule_search_locations[0]
html_static_path = ["_static", f"{mathjax_folder}/static/mathjax/tex-svg.js"]
html_css_files = ["custom.css"]  # lines of output that wrap
mathjax_path = "tex-svg.js"

html_title = "minimx"
html_theme = "sphinx_book_theme"
html_theme_options = {
    "home_page_in_toc": True,
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": False,
}

logger = logging.getLogger(__name__)
render_image = NbElementRenderer.render_image


def render_image_with_alt(self: NbElementRenderer, data: MimeData) -> list[nodes.Element]:
    """myst-nb's image, with the alternative text that the cell gave when it displayed the image (figures.show, d2l.Animator)."""
    images = render_image(self, data)
    alt = data.output_metadata.get(data.mime_type, {}).get("alt")
    for image in images:
        if alt and not image.get("alt"):
            image["alt"] = alt
    return images


def check_alt_texts(app: Sphinx, document: nodes.document) -> None:
    """Warn of each image that a reader who does not see it learns nothing of."""
    for image in document.findall(nodes.image):
        if image.get("alt"):
            continue
        place = image
        while place is not None and "cell_index" not in place:
            place = place.parent
        cell = f" of cell {place['cell_index']}" if place is not None else ""
        logger.warning(
            f"an image{cell} has no alternative text: display it with figures.show(figure, alt), or write it into the cell's "
            'metadata: {"mystnb": {"image": {"alt": "..."}}}',
            location=image,
        )


def write_reference(app: Sphinx) -> None:
    """Write the pages of the reference, from the docstrings."""
    api.write(Path(app.srcdir, "reference"))


def setup(app: Sphinx) -> dict[str, bool]:
    NbElementRenderer.render_image = render_image_with_alt
    app.connect("builder-inited", write_reference)
    app.connect("doctree-read", check_alt_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
