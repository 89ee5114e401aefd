// Pictures without a library: SVG, and tables that can be read aloud.

import { html, inPoints, percent, svg } from "./dom.js";

const widthOf = (place) => Math.max(280, Math.min(720, place.clientWidth || 600));

// From where to where the probability of the group moves that moves the furthest.
export function range(place, group) {
  const w = widthOf(place), x = (p) => 12 + p * (w - 24);
  const reached = [group.reached_low, group.reached_high];
  const low = group.allowed_low ?? reached[0], high = group.allowed_high ?? reached[1];
  const picture = svg("svg", { viewBox: `0 0 ${w} 58`, width: w, height: 58, role: "img",
    "aria-label": `A bar from 0 to 100%. The probability is ${percent(group.prior)} before, and between ${percent(low)} and ${percent(high)} after at most; these rows reach ${percent(reached[0])} to ${percent(reached[1])}.` },
  svg("rect", { x: x(0), y: 14, width: x(1) - x(0), height: 16, rx: 8, class: "track" }),
  svg("rect", { x: x(low), y: 14, width: Math.max(3, x(high) - x(low)), height: 16, rx: 3, class: "allowed" }),
  svg("rect", { x: x(reached[0]), y: 14, width: Math.max(3, x(reached[1]) - x(reached[0])), height: 16, class: "reached" }),
  svg("line", { x1: x(group.prior), x2: x(group.prior), y1: 8, y2: 36, class: "prior" }));
  for (const p of [0, 0.25, 0.5, 0.75, 1]) {
    picture.append(svg("text", { x: x(p), y: 52, "text-anchor": p === 0 ? "start" : p === 1 ? "end" : "middle" }, percent(p, 0)));
  }
  place.replaceChildren(picture, html("p", { class: "keys soft" },
    html("span", { class: "key prior", text: "before" }), html("span", { class: "key allowed", text: "at most, after" }),
    html("span", { class: "key reached", text: "reached in these rows" })));
}

// The share that each stop keeps, and what no method can exceed.
export function curve(place, points, stops, closed, chosen, choose) {
  const w = widthOf(place), h = 250, l = 48, r = 12, t = 14, b = 46;
  const x = (p) => l + (stops.indexOf(p) + 0.5) * (w - l - r) / stops.length, y = (k) => t + (1 - k) * (h - t - b);
  const picture = svg("svg", { viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "group", "aria-label": "The share that is kept at each protection" });
  for (const k of [0, 0.25, 0.5, 0.75, 1]) {
    picture.append(svg("line", { x1: l, x2: w - r, y1: y(k), y2: y(k), class: "grid" }),
      svg("text", { x: l - 8, y: y(k) + 4, "text-anchor": "end" }, percent(k, 0)));
  }
  for (const p of stops) {
    picture.append(svg("text", { x: x(p), y: h - b + 20, "text-anchor": "middle", class: closed.includes(p) ? "closed" : "" }, `${p}`));
  }
  picture.append(svg("text", { x: (l + w - r) / 2, y: h - 6, "text-anchor": "middle" }, "points that a probability may move"));
  for (const [key, kind] of [["kept_at_most", "bound"], ["kept", "kept"]]) {
    // A design for fewer points is within the limit of more.
    const best = points.map((_, i) => Math.max(...points.slice(0, i + 1).map((d) => d[key])));
    picture.append(svg("polyline", { points: points.map((d, i) => `${x(d.points)},${y(best[i])}`).join(" "), class: kind }));
  }
  for (const d of points) {
    const is = d.points === chosen;
    const dot = svg("circle", { cx: x(d.points), cy: y(d.kept), r: is ? 9 : 6, class: is ? "dot chosen" : "dot", tabindex: 0, role: "button", "aria-pressed": String(is),
      "aria-label": `${inPoints(d.points)}: ${d.kept_shown[0]} kept, ${d.verdict} protection` },
    svg("title", {}, `${inPoints(d.points)}, epsilon ${d.epsilon}: ${d.kept_shown[0]} kept, no method keeps more than ${d.kept_shown[1]}`));
    dot.addEventListener("click", () => choose(d.points));
    dot.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(d.points); } });
    picture.append(dot);
  }
  place.replaceChildren(picture, html("p", { class: "keys soft" },
    html("span", { class: "key after", text: "kept by this release" }), html("span", { class: "key bound", text: "no method keeps more" })));
}

// Shares of the values of a column, before and after.
export function bars(column) {
  const most = Math.max(...column.before, ...column.after, 1e-9);
  const bar = (kind, share) => html("span", { class: "bar" },
    svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { width: Math.max(0.4, 100 * share / most), height: 8, class: kind })),
    html("span", { class: "figure", text: percent(share) }));
  return html("table", { class: "bars" },
    html("caption", { class: "unseen", text: `${column.name}: the share of rows with each value` }),
    html("thead", {}, html("tr", {}, html("th", { scope: "col", text: "value" }),
      html("th", { scope: "col" }, html("span", { class: "key before", text: "before" }), html("span", { class: "key after", text: "after" })))),
    html("tbody", {}, ...column.values.map((value, i) => html("tr", {}, html("th", { scope: "row", text: value, title: value }),
      html("td", {}, html("span", { class: "unseen", text: "before " }), bar("before", column.before[i]), html("span", { class: "unseen", text: " after " }), bar("after", column.after[i]))))));
}

// What each true value is released as: each row of the table adds up to 100.
export function swaps(column) {
  const level = (share) => share < 0.005 ? 0 : Math.min(7, Math.ceil(7 * share));
  return html("table", { class: "swaps" },
    html("caption", { class: "unseen", text: `${column.name}: of 100 rows with a true value (line), how many show each value (column)` }),
    html("thead", {}, html("tr", {}, html("td"), ...column.values.map((value) => html("th", { scope: "col", title: value }, html("span", { text: value }))))),
    html("tbody", {}, ...column.swaps.map((row, i) => html("tr", {}, html("th", { scope: "row", text: column.values[i], title: column.values[i] }),
      ...row.map((share, j) => html("td", { class: `l${level(share)}${i === j ? " same" : ""}`, text: share < 0.005 ? "" : (100 * share).toFixed(0),
        title: `${percent(share)} of ${column.values[i]} are released as ${column.values[j]}` }))))));
}
