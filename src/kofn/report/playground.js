// The playground: draws what countMath says of a bag, and lets its probabilities be dragged.
(() => {
  const { PRESETS, MEANINGS, NOISES, PYTHON } = countWords;
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

  const mount = (root) => {
    const find = (name) => root.querySelector(`.pg-${name}`);
    const inputs = Object.fromEntries(Array.from(root.querySelectorAll("[data-of] [name]"), (node) => [node.name, node]));
    const [barsPlace, countsPlace] = root.querySelectorAll(".pg-drawing");
    const [barsReadout, countsReadout] = root.querySelectorAll(".pg-readout");
    let logits, origin, statement, now, bars, timer = null, steps = 0, chosen = null, later = 0;

    // ---- what is known of the bag
    const readStatement = () => {
      const name = root.querySelector(".pg-names input:checked").value;
      const read = { name };
      for (const [key, input] of Object.entries(inputs)) {
        if (!input.closest("[data-of]").dataset.of.split(" ").includes(name)) continue;
        let value = input.value, good = true;
        if (key === "allowed") {
          const parts = value.split(/[\s,;]+/).filter((part) => part !== "");
          good = parts.every((part) => /^\d+$/.test(part));
          value = [...new Set(parts.map(Number))].sort((a, b) => a - b);
        } else if (key !== "noise") {
          value = input.valueAsNumber;
          good = Number.isFinite(value) && (key === "scale" ? value > 0 : key === "observed" || Number.isInteger(value));
        }
        input.setAttribute("aria-invalid", String(!good));
        if (!good) return null;
        read[key] = value;
      }
      return read;
    };
    const writeStatement = (given) => {
      root.querySelector(`.pg-names input[value=${given.name}]`).checked = true;
      for (const [key, value] of Object.entries(given))
        if (key !== "name") inputs[key].value = key === "allowed" ? value.join(", ") : value;
      statementChanged();
    };
    const statementChanged = () => {
      const read = readStatement();
      if (read === null) return; // half typed: what was last understood stands
      statement = read;
      for (const label of root.querySelectorAll("[data-of]"))
        label.hidden = !label.dataset.of.split(" ").includes(statement.name);
      find("meaning").textContent = MEANINGS[statement.name](statement);
      for (const key of ["counts", "low", "high"]) inputs[key].max = logits.length;
    };
    const pickCount = (s) => {
      const { name } = statement;
      if (name === "Exactly") inputs.counts.value = s;
      else if (name === "AtLeast") inputs.low.value = s;
      else if (name === "Noisy") inputs.observed.value = s;
      else if (name === "Between") inputs[Math.abs(s - statement.low) <= Math.abs(s - statement.high) ? "low" : "high"].value = s;
      else {
        const { allowed } = statement;
        inputs.allowed.value = (allowed.includes(s) ? allowed.filter((one) => one !== s) : [...allowed, s].sort((a, b) => a - b)).join(", ");
      }
      statementChanged();
      update();
    };

    // ---- the bag itself
    const setBag = (probabilities, given, lesson) => {
      pause();
      logits = probabilities.map(countMath.logit);
      origin = logits;
      steps = 0;
      writeStatement(given);
      find("lesson").textContent = lesson;
      set(find("size"), { min: Math.min(8, logits.length) });
      find("size").value = logits.length;
      build();
    };
    const setProbability = (i, p) => {
      pause();
      logits = logits.with(i, countMath.logit(Math.min(1, Math.max(0, p))));
      origin = logits;
      steps = 0;
      update();
    };
    const setSize = (n) => {
      pause();
      // New instances differ, so that no two are tied: fractions of multiples of the golden ratio.
      const more = Array.from({ length: n }, (_, i) => countMath.logit(0.15 + 0.6 * ((i * 0.618034) % 1)));
      logits = more.map((x, i) => logits[i] ?? x);
      origin = logits;
      steps = 0;
      statementChanged();
      build();
    };

    // ---- gradient descent
    const still = () => Math.max(...now.gradient.map(Math.abs)) < 1e-3;
    const advance = () => {
      logits = countMath.step(logits, now.gradient, find("rate").valueAsNumber);
      steps += 1;
      update();
    };
    const pause = () => {
      clearInterval(timer);
      timer = null;
      find("run").textContent = "Run";
    };
    const run = () => {
      if (timer !== null) return pause();
      find("run").textContent = "Pause";
      timer = setInterval(() => {
        advance();
        if (still() || steps % 500 === 0) pause();
      }, 60);
    };

    // ---- drawing
    const build = () => {
      const focused = bars?.findIndex((bar) => bar.group === document.activeElement) ?? -1;
      const width = barsPlace.clientWidth, { height, left, right, top, bottom } = BARS;
      if (width === 0 || !barsPlace.checkVisibility()) return; // folded away: the observer calls again
      barsPlace.textContent = "";
      const svg = draw(barsPlace, "svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Probabilities of the instances" });
      for (const p of [0, 0.5, 1]) {
        const y = height - bottom - p * (height - top - bottom);
        draw(svg, "path", { class: "pg-grid", d: `M${left} ${y}H${width - right}` });
        draw(svg, "text", { x: left - 6, y: y + 4, class: "pg-end" }, String(p));
      }
      const pitch = (width - left - right) / logits.length, wide = Math.max(pitch * 0.72, pitch - 12);
      bars = logits.map((_, i) => {
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
        group.addEventListener("keydown", (event) => press(event, i));
        group.addEventListener("focus", () => tell(i));
        group.addEventListener("pointerenter", () => tell(i));
        return { group, fill, edge, arrow, middle, wide };
      });
      svg.addEventListener("pointerdown", (event) => {
        svg.setPointerCapture(event.pointerId);
        drag(event, svg);
        event.preventDefault();
      });
      svg.addEventListener("pointermove", (event) => event.buttons && svg.hasPointerCapture(event.pointerId) && drag(event, svg));
      if (focused >= 0) bars[Math.min(focused, bars.length - 1)].group.focus();
      chosen = focused >= 0 ? Math.min(focused, bars.length - 1) : null;
      update();
    };
    // A drag over several bars draws them all, as a pencil would.
    const drag = (event, svg) => {
      const box = svg.getBoundingClientRect(), { height, left, right, top, bottom } = BARS;
      const share = (event.clientX - box.left - left) / (box.width - left - right);
      const i = Math.min(logits.length - 1, Math.max(0, Math.floor(share * logits.length)));
      const p = (height - bottom - (event.clientY - box.top)) / (height - top - bottom);
      if (event.type === "pointerdown") bars[i].group.focus({ focusVisible: false });
      setProbability(i, Math.round(p * 200) / 200);
      tell(i);
    };
    const press = (event, i) => {
      const change = { ArrowUp: 0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowLeft: -0.01, PageUp: 0.1, PageDown: -0.1, Home: -1, End: 1 }[event.key];
      if (change === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      setProbability(i, Math.round((now.priors[i] + change) * 1000) / 1000);
      tell(i);
    };
    const tell = (i) => {
      chosen = i;
      barsReadout.textContent =
        i === null || i >= logits.length
          ? "Drag a bar, or go to it with Tab and press the arrow keys."
          : `Instance ${i + 1}: prior ${chance(now.priors[i])}` +
            (now.loss === Infinity ? "" : `, posterior ${chance(now.posteriors[i])}, gradient ${signed(now.gradient[i])}`) +
            (Number.isFinite(logits[i]) ? "" : "; certain, so nothing moves it");
    };
    const drawBars = () => {
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
    const drawCounts = () => {
      const width = countsPlace.clientWidth, { height, left, right, top, bottom } = COUNTS;
      const largest = Math.max(...now.probabilities), n = logits.length;
      const ceiling = [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1].find((value) => value >= largest * 0.999) ?? 1;
      const y = (p) => height - bottom - (p / ceiling) * (height - top - bottom);
      const pitch = (width - left - right) / (n + 1), wide = Math.max(pitch * 0.72, pitch - 12);
      const best = Math.max(...now.logAgreement);
      countsPlace.textContent = "";
      const svg = draw(countsPlace, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spoken() });
      for (const p of [0, ceiling / 2, ceiling]) {
        draw(svg, "path", { class: "pg-grid", d: `M${left} ${y(p)}H${width - right}` });
        draw(svg, "text", { x: left - 6, y: y(p) + 4, class: "pg-end" }, String(Number(p.toFixed(2))));
      }
      now.probabilities.forEach((p, s) => {
        const x = left + s * pitch, middle = x + pitch / 2, share = best === -Infinity ? 0 : Math.exp(now.logAgreement[s] - best);
        draw(svg, "rect", { class: "pg-mass", x: middle - wide / 2, y: y(p), width: wide, height: y(0) - y(p) });
        draw(svg, "rect", { class: "pg-allowed", x: middle - wide / 2, y: y(p * share), width: wide, height: y(0) - y(p * share) });
        draw(svg, "rect", { class: "pg-allowed", x: middle - wide / 2, y: y(0) + 3, width: wide, height: 4, opacity: share.toFixed(3) });
        if (pitch >= 20 || s % 5 === 0) draw(svg, "text", { x: middle, y: y(0) + 21, class: "pg-middle" }, String(s));
        const hit = draw(svg, "rect", { class: "pg-hit", x, y: 0, width: pitch, height });
        hit.addEventListener("pointerenter", () => (countsReadout.textContent = `P(S = ${s}) = ${chance(p)}. Press to choose this count.`));
        hit.addEventListener("click", () => pickCount(s));
      });
      const mean = left + (now.mean + 0.5) * pitch;
      draw(svg, "path", { class: "pg-mean-mark", d: `M${mean} ${height - 12}l5 9h-10z` });
    };

    // ---- numbers
    const density = () => statement.name === "Noisy" && statement.noise !== "DiscreteLaplace";
    const lossText = () => (now.loss === Infinity ? "∞" : minus(now.loss.toFixed(4)));
    const spoken = () =>
      `${PYTHON[statement.name](statement)} of ${logits.length} instances. ` +
      (now.loss === Infinity ? "The label is impossible: the loss is infinite." : `Loss ${now.loss.toFixed(4)} nats.`) +
      ` Expected count ${now.mean.toFixed(2)}; the most probable is ${now.probabilities.indexOf(Math.max(...now.probabilities))}.`;
    const cells = (row) => {
      const line = document.createElement("tr");
      line.append(...row.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
      return line;
    };
    const writeNumbers = () => {
      find("loss").textContent = lossText();
      find("likelihood-name").textContent = density() ? "density of the label" : "P(label)";
      find("likelihood").textContent = chance(Math.exp(-now.loss));
      find("mean").textContent = now.mean.toFixed(2);
      find("steps").textContent = steps;
      find("step").disabled = find("run").disabled = now.loss === Infinity;
      find("reset").disabled = steps === 0;
      find("size-value").textContent = logits.length;
      find("rate-value").textContent = find("rate").value;
      countsReadout.textContent =
        now.loss === Infinity ? "The label is impossible for these probabilities: infinite loss, no gradient." : "▲ expected count. Press a bar to choose its count.";
      if (!find("all").open) return;
      find("instance-rows").replaceChildren(
        ...logits.map((_, i) => cells([i + 1, now.priors[i].toPrecision(7), Number.isNaN(now.posteriors[i]) ? "none" : now.posteriors[i].toPrecision(7), minus(now.gradient[i].toPrecision(7))]))
      );
      find("count-rows").replaceChildren(
        ...now.probabilities.map((p, s) => cells([s, p.toPrecision(7), now.loss === Infinity ? "none" : Math.exp(Math.log(p) + now.logAgreement[s] + now.loss).toPrecision(7)]))
      );
      find("python").textContent =
        `import torch, kofn\np = torch.tensor([${now.priors.map((p) => Number(p.toPrecision(7))).join(", ")}], dtype=torch.float64)\n` +
        `kofn.count_loss(p.logit(), ${PYTHON[statement.name](statement)})  # ${minus(now.loss === Infinity ? "inf" : now.loss.toFixed(4))}`;
    };
    const update = () => {
      now = countMath.answer(logits, statement);
      now.mean = now.priors.reduce((sum, p) => sum + p, 0);
      drawBars();
      drawCounts();
      writeNumbers();
      tell(chosen);
      clearTimeout(later); // spoken when it has come to rest
      if (timer === null) later = setTimeout(() => (root.querySelector("[role=status]").textContent = spoken()), 500);
    };

    // ---- controls
    const button = (preset) => {
      const node = Object.assign(document.createElement("button"), { type: "button", textContent: preset.title });
      node.addEventListener("click", () => {
        for (const other of find("presets").children) other.setAttribute("aria-pressed", String(other === node));
        setBag(preset.probabilities, preset.statement, preset.lesson);
      });
      return node;
    };
    const seeds = root.dataset.seed ? [JSON.parse(root.dataset.seed)] : [];
    find("presets").append(...[...seeds, ...PRESETS].map(button));
    for (const name of countMath.statements) {
      const label = document.createElement("label");
      label.append(set(document.createElement("input"), { type: "radio", name: "pg-statement", value: name }), name);
      find("names").append(label);
    }
    inputs.noise.append(...countMath.noises.map((name) => new Option(NOISES[name], name)));
    find("statement").addEventListener("input", () => {
      statementChanged();
      update();
    });
    find("size").addEventListener("input", () => setSize(find("size").valueAsNumber));
    find("rate").addEventListener("input", update);
    find("step").addEventListener("click", advance);
    find("run").addEventListener("click", run);
    find("reset").addEventListener("click", () => {
      pause();
      logits = origin;
      steps = 0;
      update();
    });
    find("all").addEventListener("toggle", update);
    find("presets").firstChild.click();
    new ResizeObserver(build).observe(barsPlace);
  };
  for (const root of document.querySelectorAll(".playground")) mount(root);
})();
