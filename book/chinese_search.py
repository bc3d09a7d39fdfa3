"""Search in Chinese without a dictionary: a run of Han characters is indexed by its characters and its pairs of neighbours.

Chinese has no spaces between words. Sphinx leaves finding them to a package that guesses by a dictionary when the index is made, but what
a reader types is not cut at all, so that a phrase finds nothing. With pairs, page and query are cut alike: a phrase is found where all its
pairs are, and no other package is needed. Words in Latin letters are treated as in English.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx
from sphinx.search.zh import SearchChinese

#: A run of Han characters, or a word.
RUN = re.compile(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff]+")


class SearchPairs(SearchChinese):
    """Chinese, cut into pairs of characters."""

    #: Not what it is called, but whose stemmer it has: Sphinx 9 makes the name of the script's class of it, and there is no ChineseStemmer.
    language_name = "English"
    js_splitter_code = r"""
var splitQuery = (query) =>
  (query.match(/[\u3400-\u9fff]+|[^\s\p{P}\p{S}\u3400-\u9fff]+/gu) || []).flatMap((run) =>
    /^[\u3400-\u9fff]{2,}$/.test(run)
      ? Array.from({ length: run.length - 1 }, (_, at) => run.slice(at, at + 2))
      : [run],
  );
"""

    def split(self, input: str) -> list[str]:
        found: list[str] = []
        for run in RUN.findall(input):
            if re.match(r"[\u3400-\u9fff]", run):
                found += [*run, *(run[at : at + 2] for at in range(len(run) - 1))]
            else:
                self.latin_terms.add(run)
                found.append(run)
        return found

    def word_filter(self, stemmed_word: str) -> bool:
        return len(stemmed_word) > 1 or bool(re.match(r"[\u3400-\u9fff]", stemmed_word))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_search_language(SearchPairs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
