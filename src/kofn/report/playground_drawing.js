// How the playground draws: bars that can be moved, with their arrows, and the distribution of the count. No state.
const countDrawing = (() => {
  // The parser knows the namespace of SVG; written out it would look like an address that is asked for.
  const SVG = Object.assign(document.createElement("div"), { innerHTML: "<svg></svg>" }).firstChild.namespaceURI;
  const set = (node, attributes) => {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  };
  const draw = (parent, tag, attributes = {}, text = "") => {
    const node = parent.appendChild(set(document.createElementNS(SVG, tag), attributes));
    node.textContent = text;
    return node;
  };
  const minus = (text) => text.replace("-", "−");
  const signed = (value) => (Math.abs(value) < 5e-4 ? "0.000" : minus(value.toFixed(3)));
  const chance = (value) => (value === 0 || value >= 5e-4 ? value.toFixed(3) : minus(value.toExponential(1)));
  const BARS = { height: 250, left: 30, right: 4, top: 14, bottom: 24 };
  const COUNTS = { height: 250, left: 44, right: 4, top: 14, bottom: 38 };

  // A bar for each instance, in a new drawing. Its parts are moved by drawBars.
  const buildBars = (place, n) => {
    const width = place.clientWidth, { height, left, right, top, bottom } = BARS;
    place.textContent = "";
    const svg = draw(place, "svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Probabilities of the instances" });
    for (const p of [0, 0.5, 1]) {
      const y = height - bottom - p * (height - top - bottom);
      draw(svg, "path", { class: "pg-grid", d: `M${left} ${y}H${width - right}` });
      draw(svg, "text", { x: left - 6, y: y + 4, class: "pg-end" }, String(p));
    }
    const pitch = (width - left - right) / n, wide = Math.max(pitch * 0.72, pitch - 12);
    return Array.from({ length: n }, (_, i) => {
      const x = left + i * pitch, middle = x + pitch / 2;
      const group = draw(svg, "g", {
        class: "pg-bar", role: "slider", tabindex: 0, "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": 1,
        "aria-label": `Instance ${i + 1}`,
      });
      draw(group, "rect", { class: "pg-hit", x, y: 0, width: pitch, height: height - 2 });
      const fill = draw(group, "rect", { class: "pg-prior", x: middle - wide / 2, width: wide });
      const edge = draw(group, "path", { class: "pg-edge" });
      const arrow = draw(group, "path", { class: "pg-arrow" });
      if (pitch >= 20 || i === 0 || (i + 1) % 5 === 0)
        draw(group, "text", { x: middle, y: height - 7, class: "pg-middle" }, String(i + 1));
      return { group, fill, edge, arrow, middle, wide };
    });
  };

  // Which instance a pointer is over, and which probability it points at.
  const pointed = (event, svg, n) => {
    const box = svg.getBoundingClientRect(), { height, left, right, top, bottom } = BARS;
    const share = (event.clientX - box.left - left) / (box.width - left - right);
    const i = Math.min(n - 1, Math.max(0, Math.floor(share * n)));
    return [i, (height - bottom - (event.clientY - box.top)) / (height - top - bottom)];
  };

  // Each bar at its prior, with an arrow to its posterior: minus the gradient by its logit.
  const drawBars = (bars, now) => {
    const { height, top, bottom } = BARS, y = (p) => height - bottom - p * (height - top - bottom);
    bars.forEach(({ group, fill, edge, arrow, middle, wide }, i) => {
      const prior = now.priors[i], posterior = now.posteriors[i];
      set(fill, { y: y(prior), height: y(0) - y(prior) });
      set(edge, { d: `M${middle - wide / 2} ${y(prior)}h${wide}` });
      const length = now.loss === Infinity ? 0 : y(posterior) - y(prior), sign = Math.sign(length);
      const head = Math.min(Math.abs(length), 8), half = Math.min(wide / 2, 5.5) * (head / 8);
      const tip = y(prior) + length;
      set(arrow, {
        class: `pg-arrow ${sign < 0 ? "pg-up" : "pg-down"}`,
        d: Math.abs(length) < 1 ? "" : `M${middle - 1.25} ${y(prior)}V${tip - sign * head}H${middle - half}L${middle} ${tip}L${middle + half} ${tip - sign * head}H${middle + 1.25}V${y(prior)}Z`,
      });
      set(group, {
        "aria-valuenow": Number(prior.toFixed(4)),
        "aria-valuetext": `prior ${chance(prior)}` + (now.loss === Infinity ? "" : `, posterior ${chance(posterior)}`),
      });
    });
  };

  // The distribution of the count, and of each bar the part that the label allows. Returns what is pressed for a count.
  const drawCounts = (place, now, label) => {
    const width = place.clientWidth, { height, left, right, top, bottom } = COUNTS;
    const largest = Math.max(...now.probabilities), n = now.priors.length;
    const ceiling = [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1].find((value) => value >= largest * 0.999) ?? 1;
    const y = (p) => height - bottom - (p / ceiling) * (height - top - bottom);
    const pitch = (width - left - right) / (n + 1), wide = Math.max(pitch * 0.72, pitch - 12);
    const best = Math.max(...now.logAgreement);
    place.textContent = "";
    const svg = draw(place, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    for (const p of [0, ceiling / 2, ceiling]) {
      draw(svg, "path", { class: "pg-grid", d: `M${left} ${y(p)}H${width - right}` });
      draw(svg, "text", { x: left - 6, y: y(p) + 4, class: "pg-end" }, String(Number(p.toFixed(2))));
    }
    const hits = now.probabilities.map((p, s) => {
      const x = left + s * pitch, middle = x + pitch / 2, share = best === -Infinity ? 0 : Math.exp(now.logAgreement[s] - best);
      draw(svg, "rect", { class: "pg-mass", x: middle - wide / 2, y: y(p), width: wide, height: y(0) - y(p) });
      draw(svg, "rect", { class: "pg-allowed", x: middle - wide / 2, y: y(p * share), width: wide, height: y(0) - y(p * share) });
      draw(svg, "rect", { class: "pg-allowed", x: middle - wide / 2, y: y(0) + 3, width: wide, height: 4, opacity: share.toFixed(3) });
      if (pitch >= 20 || s % 5 === 0) draw(svg, "text", { x: middle, y: y(0) + 21, class: "pg-middle" }, String(s));
      return draw(svg, "rect", { class: "pg-hit", x, y: 0, width: pitch, height });
    });
    const mean = left + (now.mean + 0.5) * pitch;
    draw(svg, "path", { class: "pg-mean-mark", d: `M${mean} ${height - 12}l5 9h-10z` });
    return hits;
  };

  return { set, minus, signed, chance, buildBars, pointed, drawBars, drawCounts };
})();
