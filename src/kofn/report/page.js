"use strict";
// Tables sort by the column whose heading is pressed: numbers as numbers, words as words, empty cells last.
function makeSortable(table, status) {
  const body = table.tBodies[0];
  const words = new Intl.Collator(undefined, { numeric: true });
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? words.compare(a, b) : a - b);
  for (const button of table.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const heading = button.parentElement;
      // Surprise and probabilities are read from the top: their first order is the descending one.
      const first = heading.dataset.first || "ascending";
      const second = first === "ascending" ? "descending" : "ascending";
      const way = heading.getAttribute("aria-sort") === first ? second : first;
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

for (const table of document.querySelectorAll("table.sortable")) {
  makeSortable(table, table.closest(".show").querySelector("[aria-live]"));
}
