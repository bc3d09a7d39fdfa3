"""The site of the book: Sphinx with myst-nb, which runs the chapters and shows what came out. `make book` builds it, in two languages.

The English site is built from this folder. The Chinese one, with the tag `zh`, is built from the folder that `translation.py` writes: the
same notebooks with other text, and with the outputs of the first build. Nothing on a page comes from another server, so that it reads the
same without a network. `make book` makes warnings errors.

MINIMX_REPOSITORY=https://github.com/OWNER/NAME adds links to the repository, and buttons that run a chapter on Binder or Colab
(repository.py); they lead to the branch MINIMX_BRANCH, by default `main`.
"""

import os
import sys
from gettext import NullTranslations
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.locale import translators

sys.path.insert(0, str(Path(__file__).parent))
import api  # beside this file, like the extensions `page` and `chinese_search`
from repository import Repository
from translation import untranslated, words

chinese = tags.has("zh")  # noqa: F821  # Sphinx puts it here
says = words("zh") if chinese else {}

project = "minimx"
author, copyright = (says.get(text, text) for text in ("the minimx authors", "the minimx authors, Apache License 2.0"))
language = "zh_CN" if chinese else "en"

extensions = ["myst_nb", "sphinx.ext.mathjax", "page", "chinese_search"]
templates_path = ["_templates"]
include_patterns = ["index.md", "chapters/*", "reference/*", "teaching/*.md"]
exclude_patterns = ["**/.ipynb_checkpoints"]
suppress_warnings = ["toc.empty_glob"]  # a part of the contents whose chapters are still to come

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_timeout = 300  # seconds a cell
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js = {}  # widgets need a kernel; the scripts would come from another server
nb_code_prompt_show = says.get("Show code cell {type}", "Show code cell {type}")
nb_code_prompt_hide = says.get("Hide code cell {type}", "Hide code cell {type}")

# Formulas are drawn by MathJax from one file, out of a package that carries it.
mathjax_folder = find_spec("sphinx-mathjax-offline").submodule_search_locations[0]
html_static_path = ["_static", f"{mathjax_folder}/static/mathjax/tex-svg.js"]
html_css_files = ["custom.css"]  # lines of output that wrap, the switch of languages
html_js_files = [("site.js", {"defer": "defer"})]
mathjax_path = "tex-svg.js"

html_title = "minimx"
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is; the theme's script warns if nothing is said
html_theme = "sphinx_book_theme"
html_theme_options = {
    "article_header_end": ["language-switch.html", "article-header-buttons.html"],
    "home_page_in_toc": True,
    "navbar_persistent": [],  # the search has its place in the side bar; a second one would take a line of every page
    "search_bar_text": says.get("Search...", "Search..."),
    "show_toc_level": 2,
    "toc_title": says.get("Contents", "Contents"),
    "use_download_button": True,
    "use_fullscreen_button": False,
}
repository = Repository.at(os.environ.get("MINIMX_REPOSITORY", ""), os.environ.get("MINIMX_BRANCH", "main"))
if repository:
    html_theme_options |= repository.options()


def write_reference(app: Sphinx) -> None:
    """Write the pages of the reference, from the docstrings."""
    api.write(Path(app.srcdir, "reference"), says)


def finish_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """What the templates need for the switch of languages; say what a hidden cell is called, and what is English on a Chinese page."""
    root = context["pathto"]("", 1).removesuffix("/") or "."
    context["other_language"] = f"{root}/../{page}.html" if chinese else f"{root}/zh/{page}.html"
    context["language_label"] = says.get("Language", "Language")
    if "body" in context:  # myst-nb's label would be read in place of "Show a solution"
        context["body"] = context["body"].replace('<summary aria-label="Toggle hidden content">', "<summary>")
    original = page.startswith("reference/") and page != "reference/index"
    if chinese and "body" in context and (original or page.removeprefix("chapters/") in untranslated("zh")):
        notice = '<div class="admonition note"'  # of translation.with_notice
        body = context["body"].replace(notice, f'{notice} lang="zh-CN"', 1)
        context["body"] = f'<div lang="en">{body}</div>'
    for group in context.get("header_buttons", []):
        launches = group.get("label") == "launch-buttons"
        if chinese and "tooltip" in group:
            group["tooltip"] = says.get(group["tooltip"], group["tooltip"])
        for button in group.get("buttons", []) if chinese else []:
            button["tooltip"] = says.get(button["tooltip"], button["tooltip"])
            if launches:  # the repository holds the English notebooks
                button["text"] += f" ({says['in English']})"
        if launches and repository and repository.on_colab:
            text = "Copy the first cell for Colab"
            group["buttons"].append(repository.copy_button(says.get(text, text)))


class Words(NullTranslations):
    """What the theme says that its own translation lacks."""

    def gettext(self, message: str) -> str:
        return says.get(message, message)


def complete_theme(app: Sphinx) -> None:
    """Let the catalogues of the theme ask for our words where they have none."""
    for catalogue in ("sphinx", "booktheme") if chinese else ():
        translators["general", catalogue].add_fallback(Words())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_reference)
    app.connect("builder-inited", complete_theme)
    app.connect("html-page-context", finish_page, priority=600)  # after the theme has made its buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}
