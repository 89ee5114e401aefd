// Section 2: what each column holds and gives away, and what happens to it.

import { $, counted, html, listed, percent, show, svg } from "./dom.js";

const ROLES = {
  drop: "leave out",
  protect: "protect",
  randomise: "randomise",
  beside: "publish as it is",
};

export const named = (choices, role) =>
  Object.keys(choices.roles).filter((name) => choices.roles[name] === role);

// Makes a line for each column; `choose` is called with a name and a role.
export function drawColumns(columns, choose) {
  $("columns").tBodies[0].replaceChildren(...columns.map((column, i) => line(column, i, choose)));
}

function line(column, i, choose) {
  const missing = column.missing ? `, ${counted(column.missing)} missing` : "";
  const select = html("select", {
    id: `role-${i}`,
    "aria-label": `What happens to ${column.name}`,
    onchange: () => choose(column.name, select.value),
  }, ...Object.entries(ROLES).map(([role, text]) => html("option", { value: role, text })));
  const name = html("th", { scope: "row" },
    html("strong", { text: column.name }),
    html("small", { text: `${column.kind}, ${counted(column.distinct)} distinct${missing}` }),
    html("small", { class: "examples" }),
    column.is_name ? html("small", { class: "danger", text: "almost every row has its own: leave it out" }) : null,
    html("span", { class: "tells", id: `tells-${i}` }),
    html("details", { class: "order", id: `order-${i}`, hidden: true }));
  return html("tr", {}, name, html("td", {}, select));
}

// Shows choices on the lines; `reorder` is called with a name and its texts, or null for no order.
export function updateColumns(state, choices, reorder) {
  const protect = named(choices, "protect");
  state.table.columns.forEach((column, i) => {
    const role = choices.roles[column.name] ?? "drop";
    const select = $(`role-${i}`);
    const isHidden = role === "protect" && !state.shows_secret;
    select.value = role;
    select.className = `role-${role}`;
    select.closest("tr").querySelector(".examples").textContent =
      isHidden ? "values are not shown" : column.examples.join(", ");
    const share = role === "protect" || column.is_name ? null : state.given_away?.[column.name];
    $(`tells-${i}`).replaceChildren(...tells(share ?? null, protect));
    order(column, $(`order-${i}`), role === "randomise", choices.ordered[column.name], reorder);
  });
  show("secret-line", protect.length > 0);
  $("secret").checked = Boolean(state.shows_secret);
}

// What a column alone tells about the protected ones.
function tells(share, protect) {
  if (share === null) return [];
  const bar = svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { width: 100, height: 8 }),
    svg("rect", { width: Math.max(0.8, 100 * share), height: 8, class: "part" }));
  const text = `tells ${percent(share, share < 0.1 ? 1 : 0)} of ${listed(protect)}`;
  const title = `Alone, it gives away ${percent(share)} of all there is to know about ${listed(protect)}`;
  return [bar, html("small", { text, title })];
}

// The order of texts that are a scale; now : as chosen, if they are one.
function order(column, place, isRandomised, now, reorder) {
  place.hidden = !isRandomised || column.scale.length === 0;
  const key = JSON.stringify([place.hidden, now, column.scale]);
  if (place.hidden || place.dataset.key === key) return;
  place.dataset.key = key;
  const texts = now ?? column.scale;
  const focused = document.activeElement?.getAttribute("aria-label");
  const box = html("input", {
    type: "checkbox",
    id: `${place.id}-is`,
    onchange: () => reorder(column.name, box.checked ? texts : null),
  });
  box.checked = Boolean(now);
  const mover = (sign, label, j, to) => html("button", {
    type: "button",
    text: sign,
    "aria-label": `${label}: ${texts[j]}`,
    disabled: to < 0 || to >= texts.length,
    onclick: () => reorder(column.name, swapped(texts, j, to)),
  });
  const item = (text, j) => html("li", {}, html("span", { text }),
    mover("↑", "Earlier", j, j - 1), mover("↓", "Later", j, j + 1));
  place.replaceChildren(
    html("summary", { text: now ? "A scale, in this order" : "Are these texts a scale?" }),
    html("label", { class: "check" }, box, "They are a scale, from first to last"),
    html("ol", {}, ...texts.map(item)));
  const buttons = [...place.querySelectorAll("button")];
  if (focused) buttons.find((button) => button.getAttribute("aria-label") === focused)?.focus();
}

function swapped(texts, i, j) {
  const next = [...texts];
  [next[i], next[j]] = [next[j], next[i]];
  return next;
}
