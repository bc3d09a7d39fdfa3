"""The repository of the project, as the site needs it: links to it, and buttons that run a chapter on Binder or Colab.

Binder installs the project by `.binder/` in the repository. Colab knows nothing of it: there, the reader runs `install` in a first
cell, which a button copies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Whom the theme has links for. Colab opens notebooks of the first alone.
PROVIDERS = ("github", "gitlab", "bitbucket")


@dataclass(frozen=True)
class Repository:
    """Where the project is published: `https://github.com/OWNER/NAME`, and a branch."""

    address: str
    branch: str = "main"

    @classmethod
    def at(cls, address: str, branch: str) -> Repository | None:
        """The repository at an address as people write it; None for an empty one. Raises ValueError for what is no such address."""
        address = address.strip().rstrip("/").removesuffix(".git")
        if not address:
            return None
        found = re.fullmatch(r"https://([\w.-]+)/[\w.-]+/[\w.-]+", address)
        if found is None or not any(each in found[1].lower() for each in PROVIDERS):
            raise ValueError(f"MINIMX_REPOSITORY is {address!r}; https://HOST/OWNER/NAME is wanted, at {', '.join(PROVIDERS)}")
        if not re.fullmatch(r"[\w.-]+", branch):
            raise ValueError(
                f"MINIMX_BRANCH is {branch!r}; the name of a branch or a tag is wanted, without a slash, as Binder takes it"
            )
        return cls(address, branch)

    @property
    def on_colab(self) -> bool:
        return self.address.startswith("https://github.com/")

    @property
    def install(self) -> str:
        """The line that installs the project in a notebook; without spaces, so that it needs no quotes."""
        return f"%pip install minimx[fast,book]@git+{self.address}@{self.branch}"

    def options(self) -> dict[str, object]:
        """The options of the theme."""
        return {
            "repository_url": self.address,
            "repository_branch": self.branch,
            "path_to_docs": "book",
            "use_repository_button": True,
            "launch_buttons": {
                "notebook_interface": "jupyterlab",
                "binderhub_url": "https://mybinder.org",
                "colab_url": "https://colab.research.google.com" if self.on_colab else "",
            },
        }

    def copy_button(self, text: str) -> dict[str, str]:
        """A button that copies the line that Colab needs."""
        return {
            "type": "javascript",
            "text": text,
            "tooltip": self.install,
            "javascript": f"navigator.clipboard.writeText('{self.install}')",
            "icon": "fas fa-copy",
            "label": "copy-install-button",
        }
