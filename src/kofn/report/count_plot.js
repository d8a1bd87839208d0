// The distribution of a bag's count as a picture. Classes of marks are those of the figures that Python draws.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The name of the namespace is an address; the parser knows it, and the page stays free of addresses.
const OF_PICTURES = new DOMParser().parseFromString("<svg></svg>", "text/html").body.firstChild.namespaceURI;

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(OF_PICTURES, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Three digits that matter, thousands apart, a true minus; as the library's page has them.
function numberText(value) {
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString("en").replace("-", "\u2212");
  if (Math.abs(value) < 1e-3) return value.toExponential(1).replace("-", "\u2212");
  return String(Number(value.toFixed(Math.abs(value) < 1 ? 3 : Math.abs(value) < 10 ? 2 : 1))).replace("-", "\u2212");
}

// A share that is not 0 or 1 is never rounded to it.
function percentText(share) {
  if (share > 0 && share < 0.001) return "<\u00a00.1\u00a0%";
  if (share < 1 && share > 0.999) return ">\u00a099.9\u00a0%";
  return `${Number((100 * share).toFixed(1))}\u00a0%`;
}

function roundTicks(low, high, about, whole) {
  const rough = Math.max(high - low, 1e-9) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * (1 - 1e-9));
  if (whole) step = Math.max(1, step);
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) found.push(index * step || 0); // never -0
  return found;
}

// First and last count worth showing: all of a small bag, else those with some probability and what is marked.
function shownCounts(bag, marked) {
  if (bag.size <= 60) return [0, bag.size];
  const peak = Math.max(...bag.distribution);
  const there = bag.distribution.flatMap((p, place) => (p > 1e-3 * peak ? [bag.first + place] : []));
  const ends = [there[0], there[there.length - 1], ...marked];
  return [Math.max(0, Math.min(...ends) - 1), Math.min(bag.size, Math.max(...ends) + 1)];
}

function countPlot(bag, word, summary) {
  const [width, height, left, right, top, bottom] = [440, 235, 62, 30, 36, 48];
  const known = bag.known;
  // Of a label that allows more than one count only the bounds that lie near the distribution are looked for.
  const [start, end] = shownCounts(bag, known === null ? [] : [Math.round(known)]);
  const probability = (count) => bag.distribution[count - bag.first] || 0;
  const peak = Math.max(...bag.distribution) * 1.02;
  const x = (value) => left + ((value - start + 0.5) / (end - start + 1)) * (width - left - right);
  const y = (value) => height - bottom - (value / peak) * (height - bottom - top);
  const foot = height - bottom;
  const title = `Distribution of the count of bag ${bag.name}`;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "wide", role: "img", "aria-label": title });
  svg.append(shape("title", {}, title), shape("desc", {}, summary));
  for (const value of roundTicks(0, peak, 4, false)) {
    svg.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { class: "tick end", x: left - 7, y: y(value) + 4 }, percentText(value)));
  }
  if (bag.bounds && bag.bounds[0] < bag.bounds[1]) {
    const from = x(Math.max(bag.bounds[0], start) - 0.5), to = x(Math.min(bag.bounds[1], end) + 0.5);
    if (to > from) svg.append(shape("rect", { class: "allowed", x: from, width: to - from, y: top, height: foot - top }));
  }
  if (end - start < 60) {
    for (let count = start; count <= end; count++) {
      if (probability(count) < 1e-4) continue;
      const gap = Math.min(1.5, (x(1) - x(0)) * 0.1);
      const box = { x: x(count - 0.5) + gap, width: x(1) - x(0) - 2 * gap, y: y(probability(count)), height: foot - y(probability(count)) };
      svg.append(shape("rect", { class: "after", ...box }, shape("title", {}, `${count}: ${percentText(probability(count))}`)));
    }
  } else {
    let path = `M${x(start - 0.5)} ${foot}`;
    for (let count = start; count <= end; count++) path += `V${y(probability(count)).toFixed(1)}H${x(count + 0.5).toFixed(1)}`;
    svg.append(shape("path", { class: "after-line", d: `${path}V${foot}` }));
  }
  for (const value of roundTicks(start, end, 6, true)) {
    svg.append(shape("line", { class: "axis", x1: x(value), x2: x(value), y1: foot, y2: foot + 5 }));
    svg.append(shape("text", { class: "tick mid", x: x(value), y: foot + 19 }, numberText(value)));
  }
  svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: foot, y2: foot }));
  const [low, high] = bag.interval; // just below the axis
  svg.append(shape("line", { class: "interval-line", x1: x(Math.max(low, start) - 0.4), x2: x(Math.min(high, end) + 0.4), y1: foot + 3, y2: foot + 3 }));
  const name = { class: "label mid", x: (left + width - right) / 2, y: height - 7 };
  svg.append(shape("text", name, `${bag.positive} among ${numberText(bag.size)}`));
  svg.append(shape("text", { class: "label", x: 4, y: 15 }, "probability"));
  if (known !== null) {
    const at = x(Math.min(Math.max(known, start - 0.5), end + 0.5)), side = at > width * 0.75 ? "end" : at < width * 0.3 ? "" : "mid";
    svg.append(shape("line", { class: "flag", x1: at, x2: at, y1: top, y2: foot }));
    svg.append(shape("text", { class: `flagged ${side}`, x: at, y: top - 5 }, `${word}: ${numberText(known)}`));
  }
  return svg;
}
