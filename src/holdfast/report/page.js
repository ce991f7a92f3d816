(() => {
"use strict";
const SVG = "http://www.w3.org/2000/svg";
const root = document.documentElement;
const all = (query, within = document) => [...within.querySelectorAll(query)];
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

// Theme: the system's until the button is used; a reader's choice is kept where the browser lets a file keep one.
const button = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const keep = { get: () => { try { return localStorage.getItem("holdfast-theme"); } catch { return null; } },
  set: (value) => { try { localStorage.setItem("holdfast-theme", value); } catch { /* not kept */ } } };
const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
const label = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `${button.textContent} colours`); };
if (["dark", "light"].includes(keep.get())) root.dataset.theme = keep.get();
button.hidden = false;
button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; keep.set(root.dataset.theme); label(); });
dark.addEventListener("change", label);
label();

// On paper: light, and everything open.
let before = null;
addEventListener("beforeprint", () => {
  before = { theme: root.dataset.theme, closed: all("details:not(.values):not([open])") };
  root.dataset.theme = "light";
  before.closed.forEach((item) => { item.open = true; });
});
addEventListener("afterprint", () => {
  if (!before) return;
  if (before.theme) root.dataset.theme = before.theme; else delete root.dataset.theme;
  before.closed.forEach((item) => { item.open = false; });
});

// Legend: a name hides its curve, and stands out while it is pointed at.
const hidden = new Set();
all(".key-of").forEach((key) => {
  const own = key.dataset.series;
  const dim = (on) => all("#curves .plot [class^=g], #curves .plot .band").forEach((item) => item.classList.toggle("dim", on && !hidden.has(own) && !item.classList.contains(`g${own}`)));
  key.addEventListener("click", () => {
    const off = !hidden.delete(own);
    if (off) hidden.add(own);
    key.setAttribute("aria-pressed", String(!off));
    all(`#curves .plot .g${own}`).forEach((item) => item.classList.toggle("off", off));
    dim(!off);
  });
  key.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") dim(true); });
  key.addEventListener("pointerleave", () => dim(false));
  key.addEventListener("focus", () => { if (key.matches(":focus-visible")) dim(true); });
  key.addEventListener("blur", () => dim(false));
});

const bytes = (n) => { for (const [power, unit] of [[9, "GB"], [6, "MB"], [3, "kB"]]) if (n >= 10 ** power) return `${+(n / 10 ** power).toPrecision(3)} ${unit}`; return `${n} B`; };
const number = (v, kind) => kind === "loss" ? v.toFixed(4) : (100 * v).toFixed(2);
const value = ([, , mean, sd, n], kind) => number(mean, kind) + (sd === null ? "" : ` ± ${number(sd, kind)}`) + (n > 1 ? ` (${n})` : "");

function fill(tip, head, lines) {
  const title = document.createElement("b");
  title.textContent = head;
  tip.replaceChildren(title, ...lines.map(([index, name, text]) => {
    const line = document.createElement("div"), box = document.createElement("i"), what = document.createElement("span"), much = document.createElement("em");
    if (index === null) box.hidden = true; else line.className = `c${index % 8}`;
    what.textContent = name; much.textContent = text;
    line.append(...(index === null ? [what, much] : [box, what, much]));
    return line;
  }));
  tip.hidden = false;
}

// Beside x, and at the end of the drawing, top or bottom, that is farther from y: what is told is not covered.
function place(tip, svg, x, y) {
  const view = svg.viewBox.baseVal, scale = svg.getBoundingClientRect().width / view.width;
  const at = x * scale, room = tip.parentElement.clientWidth, wide = tip.offsetWidth;
  tip.style.left = `${clamp(at + 14 + wide <= room ? at + 14 : at - 14 - wide, 0, Math.max(0, room - wide))}px`;
  tip.style.top = y > view.height / 2 ? "6px" : `${Math.max(6, (view.height - 52) * scale - tip.offsetHeight)}px`;
}

// What a chart does: `near` finds a place from a point of the drawing, `step` goes on from it by a key, `show` tells it.
function lines(svg, tip, data) {
  const [x0, x1, lo, hi] = svg.dataset.x.split(" ").map(Number), [y0, y1, low, high] = svg.dataset.y.split(" ").map(Number);
  const px = (v) => x0 + (v - lo) / (hi - lo) * (x1 - x0), py = (v) => y0 + (v - low) / (high - low) * (y1 - y0);
  const guide = svg.querySelector(".guide"), spots = svg.querySelector(".spots");
  const seen = () => data.series.filter((s) => !hidden.has(String(s.index)));
  const rounds = [...new Set(data.series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
  const where = (round) => { const xs = seen().flatMap((s) => s.points.filter((p) => p[0] === round).map((p) => p[1])); return xs.length ? Math.max(...xs) : lo; };
  const nearest = (x) => data.kind === "bytes"
    ? seen().flatMap((s) => s.points).reduce((a, b) => Math.abs(px(b[1]) - x) < Math.abs(px(a[1]) - x) ? b : a, [rounds[0], Infinity])[0]
    : rounds.reduce((a, b) => Math.abs(px(b) - x) < Math.abs(px(a) - x) ? b : a);
  return {
    first: () => rounds[rounds.length - 1],
    near: (x) => nearest(x),
    step: (round, key) => rounds[clamp(rounds.indexOf(round) + ({ ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[key]), 0, rounds.length - 1)],
    show(round) {
      const found = seen().flatMap((s) => s.points.filter((p) => p[0] === round).map((p) => [s, p])).sort((a, b) => b[1][2] - a[1][2]);
      spots.replaceChildren(...found.map(([s, p]) => {
        const spot = document.createElementNS(SVG, "circle");
        for (const [k, v] of [["cx", px(p[1])], ["cy", py(p[2])], ["r", 5], ["class", `c${s.index % 8}`]]) spot.setAttribute(k, v);
        return spot;
      }));
      const x = px(where(round));
      guide.setAttribute("transform", `translate(${x} 0)`);
      guide.style.visibility = data.kind === "bytes" ? "hidden" : "visible";
      fill(tip, `round ${round}`, found.map(([s, p]) => [s.index, s.name, data.kind === "bytes" ? `${number(p[2])} at ${bytes(p[1])}` : value(p, data.kind)]));
      place(tip, svg, x, found.length ? py(found[Math.floor((found.length - 1) / 2)][1][2]) : 0);
    },
    clear() { guide.style.visibility = "hidden"; spots.replaceChildren(); },
  };
}

function cells(svg, tip, data) {
  const [left, wide, top, tall, clients, classes] = svg.dataset.cells.split(" ").map(Number);
  const cursor = svg.querySelector(".cursor");
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [-10, 0], PageDown: [10, 0], Home: [-1e9, 0], End: [1e9, 0] };
  return {
    first: () => [0, 0],
    near: (x, y) => [clamp(Math.floor((x - left) / wide), 0, clients - 1), clamp(Math.floor((y - top) / tall), 0, classes - 1)],
    step: ([i, c], key) => [clamp(i + moves[key][0], 0, clients - 1), clamp(c + moves[key][1], 0, classes - 1)],
    show([i, c]) {
      const row = data.counts[i], sum = row.reduce((a, b) => a + b, 0);
      cursor.setAttribute("x", left + i * wide); cursor.setAttribute("y", top + c * tall);
      cursor.style.visibility = "visible";
      fill(tip, `client ${i}, class ${c}`, [[null, `${row[c]} of ${sum} samples`, sum ? `${Math.round(100 * row[c] / sum)} %` : ""]]);
      place(tip, svg, left + (i + 1) * wide, top + c * tall);
    },
    clear() { cursor.style.visibility = "hidden"; },
  };
}

all("figure").forEach((figure) => {
  const source = figure.querySelector("script[type='application/json']"), tip = figure.querySelector(".tip");
  if (!source || !tip) return;
  const data = JSON.parse(source.textContent);
  tip.setAttribute("role", "status");
  all("svg.chart", figure).forEach((svg) => {
    const chart = (data.kind === "cells" ? cells : lines)(svg, tip, data);
    let at = null;
    const show = (place) => { at = place; chart.show(at); };
    const clear = () => { tip.hidden = true; chart.clear(); };
    const point = (event) => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      show(chart.near((event.clientX - box.left) * scale, (event.clientY - box.top) * scale));
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") clear(); });
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) show(at ?? chart.first()); });
    svg.addEventListener("blur", clear);
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return clear();
      if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"].includes(event.key)) return;
      if (data.kind !== "cells" && event.key.match(/Up$|Down$/) && event.key.startsWith("Arrow")) return;
      event.preventDefault();
      show(at === null ? chart.first() : chart.step(at, event.key));
    });
  });
});

// Commands: copied, or at least selected.
all(".copy").forEach((copy) => {
  const code = copy.parentElement.querySelector("code");
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(code.textContent); copy.textContent = "Copied"; }
    catch { getSelection().selectAllChildren(code); copy.textContent = "Selected"; }
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
});
})();
