// The playground: draws what countMath says of a bag, and lets its probabilities be dragged.
(() => {
  const { PRESETS, MEANINGS, NOISES, PYTHON } = countWords;
  const { set, minus, signed, chance } = countDrawing;
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
      if (barsPlace.clientWidth === 0 || !barsPlace.checkVisibility()) return; // folded away: the observer calls again
      bars = countDrawing.buildBars(barsPlace, logits.length);
      bars.forEach(({ group }, i) => {
        group.addEventListener("keydown", (event) => press(event, i));
        group.addEventListener("focus", () => tell(i));
        group.addEventListener("pointerenter", () => tell(i));
      });
      const svg = barsPlace.firstChild;
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
      const [i, p] = countDrawing.pointed(event, svg, logits.length);
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
      countDrawing.drawBars(bars, now);
      const hits = countDrawing.drawCounts(countsPlace, now, spoken());
      hits.forEach((hit, s) => {
        hit.addEventListener("pointerenter", () => (countsReadout.textContent = `P(S = ${s}) = ${chance(now.probabilities[s])}. Press to choose this count.`));
        hit.addEventListener("click", () => pickCount(s));
      });
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
