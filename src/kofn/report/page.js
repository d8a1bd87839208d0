"use strict";
// Tables sort by the column whose heading is pressed: numbers as numbers, words as words, empty cells last.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const status = table.closest(".show").querySelector("[aria-live]");
  const words = new Intl.Collator(undefined, { numeric: true });
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? words.compare(a, b) : a - b);
  for (const button of table.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const heading = button.parentElement;
      const way = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      const sign = way === "ascending" ? 1 : -1;
      const value = (row) => row.cells[heading.cellIndex].dataset.v;
      const rows = Array.from(body.rows, (row) => [value(row), row]);
      rows.sort(([a], [b]) => (a === "" || b === "" ? (a === "") - (b === "") : sign * compare(a, b)));
      body.append(...rows.map(([, row]) => row));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", way);
      if (status) status.textContent = `Sorted by ${button.textContent.trim()}, ${way}.`;
    });
  }
}
