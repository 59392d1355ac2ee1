(() => {
  const NS = "http://www.w3.org/2000/svg";
  const W = 640, H = 380, L = 74, R = 24, T = 14, B = 46;
  const make = (name, attributes, parent, text) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  };
  const digits = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v >= 1 ? v.toFixed(2) : v.toPrecision(2));
  const scaled = (units) => (v) => {
    for (const [factor, unit] of units) if (Math.abs(v) >= factor) return `${digits(v / factor)} ${unit}`;
    const [factor, unit] = units[units.length - 1];
    return `${digits(v / factor)} ${unit}`;
  };
  const formats = {
    ns: scaled([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]),
    bytes: (v) => (v >= 1048576 ? `${+(v / 1048576).toPrecision(3)} MB` : v >= 1024 ? `${+(v / 1024).toPrecision(3)} KB` : `${+v.toPrecision(3)} B`),
    mbs: scaled([[1e3, "GB/s"], [1, "MB/s"]]),
    rate: scaled([[1e6, "M/s"], [1e3, "k/s"], [1, "/s"]]),
    percent: (v) => `${(100 * v).toFixed(0)} %`,
    number: (v) => `${Number.isInteger(v) ? v : +v.toPrecision(3)}`,
    ratio: (v) => `${digits(v)} ×`,
  };
  const hidden = new Set(JSON.parse(sessionStorage.getItem("hidden-libraries") || "[]"));
  const charts = [];

  function ticks(low, high, log, base, whole) {
    const found = [];
    if (log) {
      const of = (v) => Math.log(v) / Math.log(base);
      const span = of(high) - of(low), step = Math.max(1, Math.round(span / 7));
      if (base === 10 && span < 2.5) {
        for (let p = Math.floor(of(low)); p <= of(high); p += 1)
          for (const v of [1, 2, 5].map((m) => m * 10 ** p)) if (v >= low && v <= high) found.push(v);
        if (found.length >= 2) return found;
        found.length = 0;
      }
      for (let p = Math.ceil(of(low) - 1e-9); p <= of(high) + 1e-9; p += step) found.push(base ** p);
      if (found.length >= 2) return found;
    }
    const raw = (high - low) / 6 || 1, power = 10 ** Math.floor(Math.log10(raw));
    const wanted = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
    const step = whole ? Math.max(1, Math.round(wanted)) : wanted;
    const linear = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) linear.push(v);
    return linear;
  }

  function chart(figure) {
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const place = figure.querySelector(".plot");
    const off = new Set();
    let zoom = null;
    const shown = () => spec.series.filter((s, i) => !off.has(i) && !hidden.has(s.library));
    const fx = formats[spec.x.format], fy = formats[spec.y.format];

    function limits() {
      if (zoom) return zoom;
      const points = shown().flatMap((s) => s.points);
      if (!points.length) return null;
      const range = (values, log) => {
        let low = Math.min(...values), high = Math.max(...values);
        if (log) return low === high ? [low / 2, high * 2] : [low, high];
        return [Math.min(0, low), high === 0 ? 1 : high];
      };
      const [x0, x1] = spec.x.log ? range(points.map((p) => p[0]), true) : [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]))];
      const [y0, y1] = range(points.map((p) => p[1]), spec.y.log);
      return [x0, x0 === x1 ? x1 + 1 : x1, spec.y.log ? y0 / 1.25 : y0, spec.y.log ? y1 * 1.25 : y1 * 1.06];
    }

    function draw() {
      place.replaceChildren();
      const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": spec.title }, place);
      const box = limits();
      if (!box) { make("text", { x: W / 2, y: H / 2, class: "hint", "text-anchor": "middle" }, svg, "nothing is selected"); return; }
      const [x0, x1, y0, y1] = box;
      const map = (v, a, b, c, d, log) => (log ? c + ((Math.log(v) - Math.log(a)) / (Math.log(b) - Math.log(a) || 1)) * (d - c) : c + ((v - a) / (b - a || 1)) * (d - c));
      const back = (p, a, b, c, d, log) => (log ? a * (b / a) ** ((p - c) / (d - c)) : a + ((p - c) / (d - c)) * (b - a));
      const X = (v) => map(v, x0, x1, L, W - R, spec.x.log), Y = (v) => map(v, y0, y1, H - B, T, spec.y.log);
      for (const v of ticks(y0, y1, spec.y.log, 10)) {
        make("line", { x1: L, x2: W - R, y1: Y(v), y2: Y(v), class: "grid" }, svg);
        make("text", { x: L - 8, y: Y(v) + 4, class: "tick", "text-anchor": "end" }, svg, fy(v));
      }
      for (const v of ticks(x0, x1, spec.x.log, spec.x.base || 2, spec.x.format === "number")) {
        make("line", { x1: X(v), x2: X(v), y1: H - B, y2: H - B + 4, class: "axis" }, svg);
        make("text", { x: X(v), y: H - B + 18, class: "tick", "text-anchor": "middle" }, svg, fx(v));
      }
      make("line", { x1: L, x2: W - R, y1: H - B, y2: H - B, class: "axis" }, svg);
      make("text", { x: (L + W - R) / 2, y: H - 8, class: "tick", "text-anchor": "middle" }, svg, spec.x.label);
      const clip = `clip-${figure.id}`;
      make("rect", { x: L - 4, y: T - 4, width: W - R - L + 8, height: H - B - T + 8 }, make("clipPath", { id: clip }, svg));
      const area = make("g", { "clip-path": `url(#${clip})` }, svg);
      for (const s of shown()) {
        const colour = `var(--${s.role})`;
        const points = s.points.filter((p) => !spec.y.log || p[1] > 0);
        if (points.length > 1 && points[0].length > 2) {
          const up = points.map((p) => `${X(p[0])},${Y(p[3])}`), down = points.map((p) => `${X(p[0])},${Y(Math.max(p[2], spec.y.log ? 1e-9 : -1e99))}`).reverse();
          make("polygon", { points: [...up, ...down].join(" "), fill: colour, opacity: 0.16 }, area);
        }
        make("polyline", { points: points.map((p) => `${X(p[0])},${Y(p[1])}`).join(" "), fill: "none", stroke: colour, "stroke-width": s.strong ? 2.6 : 1.6, "stroke-dasharray": s.dash || "" }, area);
        for (const p of points) {
          const dot = make("circle", { cx: X(p[0]), cy: Y(p[1]), r: s.strong ? 3.4 : 2.6, fill: colour }, area);
          make("title", {}, dot, `${s.name}\n${spec.x.label}: ${fx(p[0])}\n${fy(p[1])}${p.length > 2 ? ` (${fy(p[2])} … ${fy(p[3])})` : ""}`);
        }
      }
      const where = (event) => {
        const r = svg.getBoundingClientRect();
        return [((event.clientX - r.left) / r.width) * W, ((event.clientY - r.top) / r.height) * H];
      };
      let from = null, frame = null;
      svg.addEventListener("pointerdown", (event) => { from = where(event); svg.setPointerCapture(event.pointerId); });
      svg.addEventListener("pointermove", (event) => {
        if (!from) return;
        const to = where(event);
        frame = frame || make("rect", { class: "frame" }, svg);
        for (const [key, value] of Object.entries({ x: Math.min(from[0], to[0]), y: Math.min(from[1], to[1]), width: Math.abs(to[0] - from[0]), height: Math.abs(to[1] - from[1]) })) frame.setAttribute(key, value);
      });
      svg.addEventListener("pointerup", (event) => {
        if (!from) return;
        const to = where(event), start = from;
        from = null;
        if (Math.abs(to[0] - start[0]) < 8 || Math.abs(to[1] - start[1]) < 8) { if (frame) frame.remove(); frame = null; return; }
        const px = [start[0], to[0]].sort((a, b) => a - b), py = [start[1], to[1]].sort((a, b) => b - a);
        zoom = [...px.map((p) => back(p, x0, x1, L, W - R, spec.x.log)), ...py.map((p) => back(p, y0, y1, H - B, T, spec.y.log))];
        draw();
      });
      svg.addEventListener("dblclick", () => { zoom = null; draw(); });
      if (zoom) make("text", { x: W - R, y: T + 10, class: "hint", "text-anchor": "end" }, svg, "double-click: all");
    }

    const legend = figure.querySelector(".keys");
    spec.series.forEach((s, i) => {
      const key = document.createElement("button");
      key.type = "button";
      key.innerHTML = `<svg viewBox="0 0 24 8" width="24" height="8"><line x1="0" x2="24" y1="4" y2="4" stroke="var(--${s.role})" stroke-width="${s.strong ? 3.4 : 2.2}" stroke-dasharray="${s.dash || ""}"/></svg>`;
      key.append(s.name);
      key.setAttribute("aria-pressed", "true");
      key.addEventListener("click", () => {
        if (off.has(i)) off.delete(i); else off.add(i);
        key.setAttribute("aria-pressed", String(!off.has(i)));
        draw();
      });
      key.dataset.library = s.library || "";
      legend.append(key);
    });
    draw();
    return { redraw: () => { for (const key of legend.children) key.hidden = hidden.has(key.dataset.library); draw(); } };
  }

  document.querySelectorAll("figure.chart").forEach((figure) => charts.push(chart(figure)));
  const choice = document.getElementById("choice");
  if (choice) choice.querySelectorAll("input").forEach((box) => {
    box.checked = !hidden.has(box.value);
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(box.value); else hidden.add(box.value);
      try { sessionStorage.setItem("hidden-libraries", JSON.stringify([...hidden])); } catch (error) { /* a file has none */ }
      charts.forEach((one) => one.redraw());
    });
  });
  if (hidden.size) charts.forEach((one) => one.redraw());
})();
