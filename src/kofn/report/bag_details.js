// A bag opens in a dialog when the page's address names it (#bag-17): by its link, by a bookmark, by the back button.

const FIRST_COLUMNS = 6; // of the table of rows; the others are behind a button

function valueText(value) {
  if (value === null) return "";
  if (typeof value === "string") return value;
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(4))).replace("-", "\u2212");
}

function shareCell(share) {
  const box = { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" };
  const bar = shape("svg", box, shape("rect", { class: "trough", width: 100, height: 10 }));
  bar.append(shape("rect", { class: "fill", width: 100 * share, height: 10 }));
  return element("td", { "data-v": share }, percentText(share), bar);
}

// A cell of a column of image files: the thumbnail, or why there is none.
function thumbnailCell(content, name, file) {
  if (!content.startsWith("data:")) return element("td", { "data-v": content, class: "no-picture" }, content);
  return element("td", { "data-v": file }, element("img", { src: content, alt: name, class: "thumbnail" }), element("span", { class: "file-name" }, file));
}

function factList(bag, chapter) {
  const list = element("dl", { class: "facts" });
  const add = (name, text) => text && list.append(element("div", {}, element("dt", {}, name), element("dd", {}, text)));
  add("Label", bag.label);
  const said = bag.bounds && bag.bounds[0] === bag.bounds[1] && bag.label !== "";
  if (bag.known !== null && !(said && chapter.word === "known")) add(`${chapter.word[0].toUpperCase()}${chapter.word.slice(1)} count`, numberText(bag.known));
  if (bag.interval) {
    add("Expected count", numberText(bag.expected));
    add("90\u00a0% interval", `${bag.interval[0]} to ${bag.interval[1]}`);
  } else add("P(at least one)", percentText(bag.atLeastOne));
  add("Surprise", bag.surprise);
  return list;
}

function summaryOf(bag, chapter) {
  let text = `Expected: ${numberText(bag.expected)} of ${numberText(bag.size)}. The thick line below is the central 90\u00a0% interval, ${bag.interval[0]} to ${bag.interval[1]}.`;
  if (bag.known !== null && Number.isInteger(bag.known)) {
    const found = bag.distribution[bag.known - bag.first] || 0;
    text += ` Probability of the ${chapter.word} count: ${percentText(found)}.`;
  }
  if (bag.bounds && bag.bounds[0] < bag.bounds[1]) text += " Shaded: what the label allows.";
  return text;
}

function numbersOfCounts(bag) {
  const table = element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Count"), element("th", { scope: "col" }, "Probability"))));
  const body = table.appendChild(element("tbody"));
  bag.distribution.forEach((p, place) => {
    body.append(element("tr", {}, element("td", {}, String(bag.first + place)), element("td", { "data-v": p }, p.toPrecision(4))));
  });
  const fold = element("details", { class: "numbers" }, element("summary", {}, "Probabilities in numbers"));
  fold.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Probabilities of counts" }, table));
  return fold;
}

function rowTable(bag, chapter, data) {
  const columns = [];
  const add = (name, cells, options = {}) => columns.push({ name, cells, ...options });
  add(`P(${chapter.positive})`, bag.probability.map(shareCell), { first: "descending" });
  if (bag.posterior) add(`P(${chapter.positive} | ${chapter.given})`, bag.posterior.map(shareCell), { first: "descending" });
  const plain = (value) => element("td", { "data-v": value === null ? "" : value, ...(typeof value === "string" ? { class: "words" } : {}) }, valueText(value));
  const others = chapter.positive === "positive" ? "negative" : "another";
  if (bag.truth) add("Truth", bag.truth.map((yes) => plain(yes ? chapter.positive : others)));
  if (data.numbers.length) add("Row", bag.rows.map((row) => plain(data.numbers[row])));
  if (bag.copies) add("Copies", bag.copies.map(plain));
  for (const [name, content] of Object.entries(data.thumbnails)) {
    add(name, bag.rows.map((row) => thumbnailCell(content[row], name, (data.files[name] || [])[row] || "")));
  }
  const always = columns.length;
  data.columns.forEach((name, place) => add(name, bag.rows.map((row) => plain(data.values[place][row]))));
  const head = element("tr"), table = element("table", { class: "sortable folded" }, element("thead", {}, head));
  const body = table.appendChild(element("tbody"));
  bag.rows.forEach(() => body.append(element("tr")));
  columns.forEach(({ name, cells, first }, place) => {
    const folded = place >= always + FIRST_COLUMNS;
    const heading = element("th", { scope: "col", class: cells[0].classList.contains("words") ? "words" : "" }, element("button", { type: "button" }, name));
    if (first) heading.dataset.first = first;
    for (const [cell, row] of [[heading, head], ...cells.map((one, index) => [one, body.rows[index]])]) {
      if (folded) cell.classList.add("more");
      row.append(cell);
    }
  });
  return { table, folded: Math.max(0, columns.length - always - FIRST_COLUMNS) };
}

function rowSection(bag, chapter, data) {
  const { table, folded } = rowTable(bag, chapter, data);
  const status = element("p", { class: "unseen", "aria-live": "polite" });
  makeSortable(table, status);
  const different = bag.rows.length;
  const total = bag.copies ? `${numberText(bag.size)} instances` : `${numberText(bag.size)} rows`;
  const listed = (bag.copies || bag.rows.map(() => 1)).reduce((sum, one) => sum + one, 0) < bag.size;
  const notes = [`${listed ? `${different} of ${total}, the most probable` : total}.`, data.note].filter(Boolean);
  const part = element("div", { class: "rows-of-bag" }, element("h3", {}, "Its rows"), element("p", { class: "summary" }, notes.join(" ")), status);
  if (folded) {
    const button = element("button", { type: "button", class: "plain", "aria-expanded": "false" }, `Show ${folded} more columns`);
    button.addEventListener("click", () => {
      const open = table.classList.toggle("folded") === false;
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Show fewer columns" : `Show ${folded} more columns`;
    });
    part.append(button);
  }
  part.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Rows of bag ${bag.name}` }, table));
  return part;
}

// Labels that say "at least one" do not tell how many: of their bags there is no interval, and no distribution to draw.
function countSection(bag, chapter) {
  const summary = summaryOf(bag, chapter);
  const figure = element("figure", { class: "plate" }, countPlot(bag, chapter.word, summary), element("figcaption", {}, summary));
  return element("div", { class: "two" }, figure, element("div", {}, factList(bag, chapter), numbersOfCounts(bag)));
}

function startDetails() {
  const source = document.getElementById("bag-data");
  if (!source) return;
  const data = JSON.parse(source.textContent), dialog = document.getElementById("bag-detail");
  const bags = new Map();
  for (const chapter of data.chapters) {
    for (const bag of chapter.bags) bags.set(`${chapter.prefix}bag-${bag.name}`, { bag, chapter });
  }
  const address = () => {
    try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; }
  };
  const linkOf = (key) => [...document.querySelectorAll("a.open-bag")].find((link) => link.hash.slice(1) === key || decodeURIComponent(link.hash.slice(1)) === key);
  // The neighbours are those of the table as it is sorted now.
  const neighbour = (key, step) => {
    const link = linkOf(key), rows = link ? [...link.closest("tbody").rows] : [];
    const row = rows[rows.indexOf(link && link.closest("tr")) + step];
    return row && row.querySelector("a.open-bag");
  };
  let opened = "";

  function show(key) {
    const { bag, chapter } = bags.get(key);
    const shown = { ...bag, positive: chapter.positive === "positive" ? "positives" : chapter.positive };
    const heading = element("h2", { id: "bag-detail-h", tabindex: "-1" }, `Bag ${bag.name}`);
    const bar = element("div", { class: "dialog-bar" }, heading);
    for (const [text, step] of [["Previous", -1], ["Next", 1]]) {
      const button = element("button", { type: "button", class: "plain" }, text), other = neighbour(key, step);
      button.disabled = !other;
      button.addEventListener("click", () => location.replace(other.hash));
      bar.append(button);
    }
    const close = element("button", { type: "button", class: "plain" }, "Close");
    close.addEventListener("click", () => dialog.close());
    bar.append(close);
    dialog.replaceChildren(bar, bag.interval ? countSection(shown, chapter) : factList(bag, chapter), rowSection(bag, chapter, data.tables[chapter.table]));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    heading.focus();
    opened = key;
  }

  function follow() {
    const key = address();
    if (bags.has(key)) show(key);
    else if (dialog.open) dialog.close();
  }

  // Closing leads back to where the bag is listed, so that the address no longer opens it.
  dialog.addEventListener("close", () => {
    const link = linkOf(opened);
    if (address() === opened) history.replaceState(null, "", `#${bags.get(opened).chapter.prefix}bags`);
    if (link) link.focus();
    opened = "";
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  for (const link of document.querySelectorAll("a.open-bag")) {
    link.closest("tr").addEventListener("click", (event) => {
      if (!event.target.closest("a") && !String(getSelection())) link.click();
    });
  }
  addEventListener("hashchange", follow);
  follow();
}

startDetails();
