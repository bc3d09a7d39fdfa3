"""What is done to the pages of the site as Sphinx reads them, in both languages.

Chapters get their numbers and appendices their letters, and `chapter 5` or `appendix A` in the text becomes a link. Cells get anchors named
after their ids, and the sections of a translated page those of the original, so that the switch of languages finds the same place. What
a cell printed is shown in one piece, and once. A picture without alternative text is a warning.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.core import render
from myst_nb.core.render import MimeData, NbElementRenderer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

#: How the text names a chapter, and an appendix.
CHAPTER = re.compile(r"\b[Cc]hapter (\d+)\b|第 (\d+) 章|\b[Aa]ppendix ([A-Z])\b|附录 ([A-Z])")
#: The preface, which has no number.
PREFACE = "00"

logger = logging.getLogger(__name__)
render_image = NbElementRenderer.render_image
merge_streams = render.coalesce_streams


def merge_copies_of_streams(outputs: list[Any]) -> list[Any]:
    """myst-nb's merging of what a cell printed in pieces, on copies.

    Else the first piece in the notebook becomes the whole and the others stay: the translation, made from that notebook, shows them twice.
    """
    return merge_streams(copy.deepcopy(outputs))


def render_image_with_alt(self: NbElementRenderer, data: MimeData) -> list[nodes.Element]:
    """myst-nb's image, with the alternative text that the cell gave when it displayed the image (figures.show, d2l.Animator)."""
    images = render_image(self, data)
    alt = data.output_metadata.get(data.mime_type, {}).get("alt")
    for image in images:
        if alt and not image.get("alt"):
            image["alt"] = alt
    return images


def chapters(app: Sphinx) -> dict[str, str]:
    """The names of the pages of chapters and appendices, by their numbers and letters: "5", "A"."""
    names = sorted(path.stem for path in Path(app.srcdir, "chapters").glob("*.ipynb"))
    labels = {name: name.split("-")[0] for name in names}
    return {label.lstrip("0"): f"chapters/{name}" for name, label in labels.items() if label != PREFACE}


def number(app: Sphinx, document: nodes.document) -> None:
    """Put a chapter's number, or an appendix's letter, before its title."""
    page = app.env.current_document.docname
    title = document.next_node(nodes.title)
    for label, name in chapters(app).items():
        if name == page and title is not None:
            title.insert(0, nodes.Text(f"{label}. "))


def link_chapters(app: Sphinx, document: nodes.document) -> None:
    """Make links of what a chapter, an appendix, the preface or a page for teachers says about chapters."""
    page, names = app.env.current_document.docname, chapters(app)
    if not page.startswith(("chapters/", "teaching/")):
        return
    for text in list(document.findall(nodes.Text)):
        if not isinstance(text.parent, (nodes.paragraph, nodes.emphasis, nodes.strong)):
            continue
        new, end = list[nodes.Node](), 0
        for found in CHAPTER.finditer(text):
            target = names.get(next(filter(None, found.groups())))
            if target and target != page:
                link = nodes.inline("", found[0])
                options = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{target}", "refdoc": page, "refexplicit": True}
                new += [nodes.Text(text[end : found.start()]), addnodes.pending_xref("", link, refwarn=True, **options)]
                end = found.end()
        if new:
            text.parent.replace(text, [*new, nodes.Text(text[end:])])


def name_cells(app: Sphinx, document: nodes.document) -> None:
    """Give each cell of code an anchor, `cell-` and its id."""
    source = Path(app.env.doc2path(app.env.current_document.docname))
    if source.suffix != ".ipynb":
        return
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    for container in document.findall(nodes.container):
        if container.get("nb_element") == "cell_code":
            container["ids"].append(f"cell-{cells[container['cell_index']]['id']}")


def sections(app: Sphinx, document: nodes.document) -> None:
    """Note the sections' anchors of an original; give them to the sections of its translation."""
    page, found = app.env.current_document.docname, list(document.findall(nodes.section))
    if app.config.language == "en":
        app.env.metadata[page]["sections"] = [section["ids"][0] for section in found]
        return
    names = json.loads(Path(app.srcdir, "sections.json").read_text(encoding="utf-8")).get(page, [])
    if len(names) == len(found):
        for section, name in zip(found, names):
            section["ids"] = [name, *(each for each in section["ids"] if each != name)]


def write_sections(app: Sphinx, error: Exception | None) -> None:
    """Leave the anchors of the originals where the build of a translation finds them."""
    if error is None and app.config.language == "en":
        found = {page: values["sections"] for page, values in app.env.metadata.items() if "sections" in values}
        Path(app.outdir).parent.joinpath("sections.json").write_text(json.dumps(found), encoding="utf-8")


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


def setup(app: Sphinx) -> dict[str, bool]:
    NbElementRenderer.render_image = render_image_with_alt
    render.coalesce_streams = merge_copies_of_streams
    for early in (number, link_chapters, name_cells, sections):  # before Sphinx collects titles and contents
        app.connect("doctree-read", early, priority=100)
    app.connect("doctree-read", check_alt_texts)
    app.connect("build-finished", write_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
