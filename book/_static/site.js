// Two small helps to links that work without them.
//
// The switch of languages goes to the same place: both pages have the same sections and cells, with the same ids, so the last one
// whose top has passed the top of the window is the anchor. A search goes along, too. And files are downloaded rather than shown.

const HEADER = 120; // pixels: what lies below this is not being read yet

function place() {
  const anchors = [...document.querySelectorAll("article section[id], article .cell[id]")];
  const passed = anchors.filter((each) => each.getBoundingClientRect().top < HEADER);
  const last = passed.at(-1);
  return window.scrollY < HEADER || last === undefined ? "" : `#${last.id}`;
}

// Chromium scrolls when the keyboard reaches something in the header, although that is in sight: the page goes back to where it was.
let reading = 0;
window.addEventListener("scroll", () => (reading = window.scrollY));

document.addEventListener("DOMContentLoaded", () => {
  for (const link of document.querySelectorAll(".language-switch a")) {
    const page = link.getAttribute("href");
    const aim = () => link.setAttribute("href", page + window.location.search + place());
    link.addEventListener("focus", () => window.scrollTo({ top: reading, behavior: "instant" }));
    for (const event of ["click", "auxclick", "contextmenu", "focus"]) link.addEventListener(event, aim);
  }
  for (const link of document.querySelectorAll("a.btn-download-source-button")) link.setAttribute("download", "");
});
