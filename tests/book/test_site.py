"""The site as a reader meets it, in a browser without a window: contents, search, the switch of languages, an exercise, a phone.

`make site-test` runs these on the site that `make book` has built. They take a minute or two and need a browser, so `make test` skips them:
they run where MINIMX_SITE names the folder of a built site. The browser is Debian's or any other Chromium on the path, or that of
`python -m playwright install chromium`.
"""

from __future__ import annotations

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

if "MINIMX_SITE" not in os.environ:
    pytest.skip("the site's tests need a built site and a browser: `make book`, then `make site-test`", allow_module_level=True)

pytestmark = pytest.mark.timeout(600)  # a browser beside other work

SITE = Path(os.environ["MINIMX_SITE"]).resolve()
CHAPTERS = sorted(path.stem for path in (SITE / "chapters").glob("[0-9]*.html") if not path.stem.startswith("00-"))
NDARRAY, ENGINE = CHAPTERS[:2]


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        self.links += [found[each] or "" for each in ("href", "src") if each in found]


def test_no_link_is_dead() -> None:
    pages = {path: Page(path) for path in SITE.rglob("*.html") if "_static" not in path.parts}
    assert len(pages) > 2 * len(CHAPTERS)
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme in ("", "file") and not (
                target.exists() and ("javascript" in link or reached(pages, target, parts.fragment))
            ):
                dead.append(f"{path.relative_to(SITE)}: {link}")
    assert not dead, "\n".join(dead[:20])


def reached(pages: dict[Path, Page], target: Path, anchor: str) -> bool:
    """Whether a page has an anchor; other files have none to look for."""
    return target not in pages or unquote(anchor) in pages[target].anchors


@pytest.mark.parametrize(("folder", "words"), [("", "chapter 1"), ("zh/", "第 1 章")])
def test_what_is_said_of_other_chapters_is_a_link(folder: str, words: str) -> None:
    text = (SITE / folder / "chapters" / f"{ENGINE}.html").read_text(encoding="utf-8")
    assert f'href="{NDARRAY}.html"><span class="doc">{words}</span></a>' in text


@pytest.mark.parametrize(("folder", "words"), [("", "chapter 8"), ("zh/", "第 8 章")])
def test_pages_for_teachers_lead_to_chapters(folder: str, words: str) -> None:
    text = (SITE / folder / "teaching" / "benchmark.html").read_text(encoding="utf-8")
    assert f'href="../chapters/{CHAPTERS[7]}.html"><span class="doc">{words}</span></a>' in text


@pytest.mark.parametrize(("folder", "words"), [("", "appendix A"), ("zh/", "附录 A")])
def test_the_preface_leads_to_the_appendices(folder: str, words: str) -> None:
    text = (SITE / folder / "chapters" / "00-preface.html").read_text(encoding="utf-8")
    assert f'href="A-coming-from-mxnet.html"><span class="doc">{words}</span></a>' in text
    title = (SITE / folder / "chapters" / "A-coming-from-mxnet.html").read_text(encoding="utf-8")
    assert "<h1>A. " in title


def test_every_page_has_its_other_language() -> None:
    english = {
        path.relative_to(SITE) for path in SITE.rglob("*.html") if not {"_static", "zh"} & set(path.relative_to(SITE).parts)
    }
    chinese = {path.relative_to(SITE / "zh") for path in (SITE / "zh").rglob("*.html") if "_static" not in path.parts}
    assert english == chinese
    for path in english:
        assert 'lang="zh-CN" rel="alternate">中文</a>' in (SITE / path).read_text(encoding="utf-8")
        assert '<html lang="zh-CN"' in (SITE / "zh" / path).read_text(encoding="utf-8")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    """The site's address. Pages can be opened as files, too; but there a browser shows no lines of text beside what a search found."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser is driven by the package playwright")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next(filter(None, map(shutil.which, names)), None)
    with playwright.sync_playwright() as driver:
        try:
            opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no browser starts here: {error}")
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, root: str) -> Iterator[Any]:
    """A page that reports what goes wrong on it: errors and warnings of scripts, files that are missing, requests that leave the site."""
    opened, faults = browser.new_page(viewport={"width": 1300, "height": 900}), []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda said: said.type not in ("error", "warning") or faults.append(said.text))
    opened.on("response", lambda answer: answer.status < 400 or faults.append(f"{answer.status}: {answer.url}"))
    opened.on(
        "request", lambda request: request.url.startswith((root, "file:", "data:")) or faults.append(f"outside: {request.url}")
    )
    yield opened
    opened.close()
    assert faults == []


def click(page: Any, link: Any) -> None:
    """Click where something is seen. Playwright itself scrolls before it clicks into a header that stays in place, which no reader does."""
    box = link.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.mark.parametrize(
    ("home", "first"), [("index.html", "1. NDArray and autograd"), ("zh/index.html", "1. 半小时学会 NDArray")]
)
def test_contents(page: Any, root: str, home: str, first: str) -> None:
    page.goto(root + home)
    links = page.locator(".bd-sidebar-primary .toctree-l1 > a", has_text="1. ")
    links.first.click()
    assert page.locator("article h1").inner_text().startswith(first)
    page.locator("a.right-next").click()
    assert page.locator("article h1").inner_text().startswith("2. ")
    page.locator(".bd-sidebar-secondary a").nth(1).click()
    assert "#" in page.url


@pytest.mark.parametrize(
    ("home", "query", "found"),
    [
        ("index.html", "back-pressure", ENGINE),
        ("index.html", "boolean_mask", "nd.contrib"),
        ("zh/index.html", "反压", ENGINE),
        ("zh/index.html", "有限差分 autograd", NDARRAY),
        ("zh/index.html", "softmax 回归", NDARRAY),
        ("zh/index.html", "幂", NDARRAY),
    ],
)
def test_search(page: Any, root: str, home: str, query: str, found: str) -> None:
    page.goto(root + home)
    page.locator(".bd-sidebar-primary .search-button-field").click()
    page.locator("input[type=search]:visible").fill(query)
    page.keyboard.press("Enter")
    result = page.locator(f"ul.search a[href*='{found}.html']").first
    result.wait_for(timeout=10_000)
    result.click()
    page.wait_for_url(f"**/{found}.html*")
    assert page.url.startswith(root + home.removesuffix("index.html"))


def test_search_works_in_files_without_a_server(browser: Any) -> None:
    page = browser.new_page()
    page.goto(f"{SITE.as_uri()}/zh/search.html?q=%E6%8B%93%E6%89%91")
    page.locator("ul.search a").first.wait_for(timeout=10_000)
    page.close()


def test_what_is_nowhere_is_not_found(page: Any, root: str) -> None:
    page.goto(root + "zh/search.html?q=%E7%86%8A%E7%8C%AB%E5%90%83%E7%AB%B9%E5%AD%90")
    page.locator("#search-results p.search-summary").wait_for(timeout=10_000)
    page.wait_for_function("document.querySelectorAll('ul.search li').length === 0")


def test_the_switch_goes_to_the_same_place_and_back(page: Any, root: str) -> None:
    page.goto(root + f"chapters/{ENGINE}.html#cell-lanes")
    page.wait_for_load_state()
    click(page, page.get_by_role("navigation", name="Language").get_by_role("link", name="中文"))
    page.wait_for_url(f"**/zh/chapters/{ENGINE}.html#cell-lanes")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    top = page.evaluate("document.getElementById('cell-lanes').getBoundingClientRect().top")
    assert 0 <= top < 400
    link = page.get_by_role("navigation", name="语言").get_by_role("link", name="English")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{root}chapters/{ENGINE}.html#cell-lanes")
    assert page.evaluate("document.documentElement.lang") == "en"


@pytest.mark.parametrize(
    "script",
    [
        "() => [...document.querySelectorAll('article section[id], article .cell[id]')].map((each) => each.id)",
        "() => [...document.querySelectorAll('article .cell_output')].map((each) => each.textContent)",
    ],
    ids=["anchors", "outputs"],
)
def test_both_languages_have_the_same(page: Any, root: str, script: str) -> None:
    for name in CHAPTERS:
        page.goto(root + f"chapters/{name}.html")
        english = page.evaluate(script)
        page.goto(root + f"zh/chapters/{name}.html")
        assert page.evaluate(script) == english


def test_the_switch_keeps_a_query_and_works_without_scripts(page: Any, root: str, browser: Any) -> None:
    page.goto(root + "search.html?q=tape")
    page.locator(".language-switch a").click()
    page.wait_for_url("**/zh/search.html?q=tape")
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(root + f"chapters/{NDARRAY}.html")
    plain.locator(".language-switch a").click()
    plain.wait_for_url(f"**/zh/chapters/{NDARRAY}.html")
    plain.context.close()


@pytest.mark.parametrize(
    ("folder", "show", "hide"), [("", "Show a solution", "Hide the solution"), ("zh/", "显示参考答案", "隐藏参考答案")]
)
def test_an_exercise(page: Any, root: str, folder: str, show: str, hide: str) -> None:
    page.goto(root + f"{folder}chapters/{NDARRAY}.html")
    cell = page.locator("#cell-solution-1")
    assert cell.locator("summary").get_attribute("aria-label") is None  # it would be read in place of what is written
    assert not cell.locator("pre").first.is_visible()
    cell.get_by_text(show).click()
    assert cell.locator("pre").first.is_visible()
    assert "def sees_writes" in cell.inner_text()
    cell.get_by_text(hide).click()
    assert not cell.locator("pre").first.is_visible()


def test_the_notebook_can_be_downloaded(page: Any, root: str) -> None:
    for folder in ("", "zh/"):
        page.goto(root + f"{folder}chapters/{NDARRAY}.html")
        link = page.locator("a.btn-download-source-button")
        assert link.get_attribute("download") == ""
        assert (SITE / folder / "chapters" / str(link.get_attribute("href"))).resolve().is_file()


def test_light_and_dark(page: Any, root: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(root + f"chapters/{NDARRAY}.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    for mode in ("light", "dark"):
        click(page, page.locator(".theme-switch-button"))
        page.locator(f".theme-change-button[data-mode={mode}]").click()
        assert page.evaluate("document.documentElement.dataset.theme") == mode


#: Texts whose contrast with the ground behind them is below what WCAG asks for (level AA, letters of ordinary size).
FAINT = """() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (channel) => (channel /= 255) <= 0.03928 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  const luminance = ([red, green, blue]) => 0.2126 * light(red) + 0.7152 * light(green) + 0.0722 * light(blue);
  const ground = (element) => {
    for (let each = element; each !== null; each = each.parentElement) {
      const [red, green, blue, opacity = 1] = parts(getComputedStyle(each).backgroundColor);
      if (opacity > 0.99) return [red, green, blue];
    }
    return [255, 255, 255];
  };
  const faint = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.getClientRects().length || element.closest("svg, .headerlink")) continue;
    const [red, green, blue, opacity = 1] = parts(getComputedStyle(element).color);
    const behind = ground(element);
    const color = [red, green, blue].map((each, index) => each * opacity + behind[index] * (1 - opacity));
    const [low, high] = [luminance(color), luminance(behind)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) faint.set(`${color.map(Math.round)} on ${behind}`, texts.currentNode.data.trim().slice(0, 40));
  }
  return [...faint];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_written_can_be_read(page: Any, root: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # or a color would be measured on its way from light to dark
    for name in ("index", "search", "reference/operators", "teaching/index", *(f"chapters/{each}" for each in CHAPTERS)):
        page.goto(f"{root}{name}.html", wait_until="domcontentloaded")
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert page.evaluate(FAINT) == [], name


#: Lines of what cells printed, apart from errors, that the browser has broken: a row that takes more than one line's height.
BROKEN = """() => [...document.querySelectorAll('div.cell_output :is(.stream, .text_plain) pre')].filter((pre) => {
  const style = getComputedStyle(pre);
  const room = pre.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
  const rows = pre.textContent.replace(/\\n$/, '').split('\\n').length;
  return pre.clientHeight > 0 && room / rows > 1.5 * parseFloat(style.lineHeight);
}).map((pre) => pre.textContent.slice(0, 80))"""
#: Boxes of output whose right end can neither be seen nor scrolled to.
CUT = """() => [...document.querySelectorAll('div.cell_output pre')].filter((pre) =>
  pre.clientWidth > 0 && pre.scrollWidth > pre.clientWidth + 1 && !['auto', 'scroll'].includes(getComputedStyle(pre).overflowX)
).map((pre) => pre.textContent.slice(0, 80))"""
#: How many boxes of output are wider than their place, so that they scroll.
SCROLLING = "() => [...document.querySelectorAll('div.cell_output .stream pre')].filter((pre) => pre.scrollWidth > pre.clientWidth).length"


def test_tables_keep_their_rows_on_a_phone(page: Any, root: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    scrolling = 0
    for name in CHAPTERS:
        page.goto(f"{root}chapters/{name}.html", wait_until="domcontentloaded")
        assert page.evaluate(BROKEN) == [], name
        assert page.evaluate(CUT) == [], name
        scrolling += page.evaluate(SCROLLING)
    assert scrolling > 10


def test_no_page_is_wider_than_a_phone(page: Any, root: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    wide = []
    for path in sorted(SITE.rglob("*.html")):
        name = path.relative_to(SITE).as_posix()
        if "_static" in name or name.startswith("zh/reference/"):  # those are the English ones
            continue
        page.goto(root + name, wait_until="domcontentloaded")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(name)
    assert wide == []
