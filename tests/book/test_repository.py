"""The addresses of the buttons that run a chapter elsewhere, and what Binder installs."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from repository import Repository  # book/, see conftest.py

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("address", ["https://github.com/somebody/minimx", "https://github.com/somebody/minimx.git/ "])
def test_where_the_buttons_lead(address: str) -> None:
    launch = pytest.importorskip("sphinx_book_theme.header_buttons.launch", reason="the extra `site` brings the theme")
    repository = Repository.at(address, "v1.0")
    assert repository is not None
    context = {
        "header_buttons": [], "sourcename": "chapters/06-export.ipynb", "pagename": "chapters/06-export",
        "github_url": "https://github.com", "github_user": "somebody", "github_repo": "minimx",
    }  # fmt: skip
    environment = SimpleNamespace(doc2path=lambda name: f"{name}.ipynb", metadata={"chapters/06-export": {"kernelspec": {}}})
    app = SimpleNamespace(env=environment, config={"html_theme_options": repository.options()})
    launch.add_launch_buttons(app, "chapters/06-export", "page.html", context, None)
    binder, colab = (button["url"] for button in context["header_buttons"][0]["buttons"])
    assert binder == "https://mybinder.org/v2/gh/somebody/minimx/v1.0?urlpath=lab/tree/book/chapters/06-export.ipynb"
    assert colab == "https://colab.research.google.com/github/somebody/minimx/blob/v1.0/book/chapters/06-export.ipynb"
    assert (ROOT / "book" / "chapters" / "06-export.ipynb").exists()


def test_what_colab_runs_first() -> None:
    repository = Repository("https://github.com/somebody/minimx")
    assert repository.install == "%pip install minimx[fast,book]@git+https://github.com/somebody/minimx@main"
    button = repository.copy_button("Copy")
    assert button["javascript"] == f"navigator.clipboard.writeText('{repository.install}')"
    assert not set("\"'<>&") & set(repository.install)  # it stands in an attribute of HTML


def test_without_an_address_there_are_no_buttons() -> None:
    assert Repository.at("", "main") is None


def test_colab_opens_what_is_on_github() -> None:
    repository = Repository.at("https://gitlab.com/somebody/minimx", "main")
    assert repository is not None
    assert repository.options()["launch_buttons"]["colab_url"] == ""


@pytest.mark.parametrize(
    ("address", "branch", "message"),
    [
        (
            "github.com/somebody/minimx",
            "main",
            "MINIMX_REPOSITORY is 'github.com/somebody/minimx'; https://HOST/OWNER/NAME is wanted",
        ),
        ("https://github.com/minimx", "main", "https://HOST/OWNER/NAME is wanted"),
        ("https://example.org/somebody/minimx", "main", "at github, gitlab, bitbucket"),
        ("https://github.com/somebody/minimx", "a/b", "MINIMX_BRANCH is 'a/b'"),
        ("https://github.com/somebody/minimx", "", "MINIMX_BRANCH is ''"),
    ],
)
def test_what_is_no_repository(address: str, branch: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Repository.at(address, branch)


def test_what_binder_installs() -> None:
    lines = (ROOT / ".binder" / "requirements.txt").read_text().splitlines()
    extras = re.fullmatch(r"\.\[([\w,]+)\]", next(line for line in lines if not line.startswith("#")))
    assert extras is not None
    offered = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(extras[1].split(",")) <= set(offered)
    assert re.fullmatch(r"python-3\.1[0-4]\n", (ROOT / ".binder" / "runtime.txt").read_text())
