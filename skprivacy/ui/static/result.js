// What a design means: the sentence and the verdict of section 4, and all of section 5.

import { bars, curve, range, swaps } from "./charts.js";
import { named } from "./columns.js";
import { $, html, inPoints, listed, percent, say, show } from "./dom.js";

const SIGNS = { PASS: "✓", CAUTION: "!", FAIL: "✗" };

// Shows a view; one that is near is that of another stop, and marked so.
export function drawResult(state, choices) {
  const view = state.view;
  for (const id of ["result", "s-look"]) {
    show(id, Boolean(view));
    $(id).classList.toggle("old", Boolean(view?.is_near));
  }
  $("epsilon").textContent = view && !view.is_near ? `epsilon = ${view.epsilon}` : "";
  if (!view) return;
  const approx = view.is_near ? "≈ " : "";
  say("near", view.is_near ? preview(state, choices) : "");
  const sentence = approx + (view.sentence_named ?? view.sentence);
  if ($("sentence").textContent !== sentence) $("sentence").textContent = sentence; // read aloud once
  show("which", !view.sentence_named);
  range($("range"), view.range);
  for (const id of ["verdict", "lead"]) show(id, !state.problem);
  show("only-made-up", view.is_made_up && choices.purpose === "near");
  const badge = `${SIGNS[view.status] ?? "?"} ${view.status}: ${protection(view.verdict)}`;
  $("verdict").replaceChildren(html("span", { class: `badge ${view.status}`, text: badge }));
  $("lead").textContent = view.lead.replace(`${view.status}: `, "");
  document.title = `${approx}${inPoints(view.points)}, ${view.kept_shown[0]} kept - skprivacy`;
  look(view, approx, listed(named(choices, "protect")));
}

function preview(state, choices) {
  const said = `≈ A preview: the figures are those of ${inPoints(state.view.points)}.`;
  return state.busy && !state.problem ? `${said} Those of ${inPoints(choices.points)} are not there yet.` : said;
}

function protection(verdict) {
  if (verdict === "none") return "No protection";
  if (verdict === "unknown") return "Protection is not known";
  return `${verdict[0].toUpperCase()}${verdict.slice(1)} protection`;
}

function look(view, approx, about) {
  show("made-up", view.is_made_up);
  const { right, blind, raw } = view.attacker;
  const { prior, allowed_low: low, allowed_high: high } = view.range;
  const furthest = low === null || high === null ? null : Math.max(prior - low, high - prior);
  const isBlind = percent(right) === percent(blind);
  const { unchanged } = view.facts.fidelity;
  const figure = (big, small) =>
    html("div", {}, html("b", { text: approx + big }), html("span", { text: small }));
  $("figures").replaceChildren(
    figure(furthest === null ? "–" : inPoints(Number((100 * furthest).toFixed(1))), `at most, that a released row moves the probability of a group of ${about}.`),
    figure(isBlind ? "No better" : percent(right), isBlind
      ? `than a blind guess about ${about}: the best attacker who sees a released row is right for ${percent(right)}. From the table as it is: ${percent(raw)}.`
      : `of ${about} guessed right by the best attacker, who sees a released row. Blindly: ${percent(blind)}. From the table as it is: ${percent(raw)}.`),
    figure(view.kept_shown[0], view.kept_text),
    figure(unchanged === null ? "–" : percent(unchanged), view.face_value));
  $("warnings").replaceChildren(...warnings([...view.vanished, ...view.warnings]));
  $("pairs").replaceChildren(...view.columns.map(pair));
  rows(view);
  hints();
}

function warnings([first, ...others]) {
  if (!first) return [];
  const more = html("details", {},
    html("summary", { text: `${others.length} more` }),
    html("ul", {}, ...others.map((text) => html("li", { text }))));
  return [html("div", { class: "warn" },
    html("p", {}, html("strong", { text: "Note: " }), first),
    others.length ? more : null)];
}

// A column before and after.
function pair(column) {
  const { name, unit, unchanged, mean_shift: shift } = column;
  const said = [];
  if (unchanged !== null) said.push(`${percent(unchanged)} unchanged`);
  if (shift !== null) said.push(`moves by ${Number(shift.toPrecision(3))}${unit ? ` ${unit}` : ""} on average`);
  const scroll = html("div", {
    class: "scroll",
    tabindex: 0,
    role: "region",
    "aria-label": `What each value of ${name} is released as`,
  }, swaps(column));
  const hint = html("p", { class: "more", hidden: true, text: "Scroll sideways inside the table to see all values." });
  return html("section", { class: "pair", "aria-label": name },
    html("h4", {}, name, html("small", { text: ` ${said.join(", ")}` })),
    html("div", { class: "both" }, bars(column), html("div", {}, scroll, hint)));
}

// Tables that are wider than their place say so.
function hints() {
  for (const scroll of document.querySelectorAll(".scroll")) {
    scroll.nextElementSibling.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
  }
}

function rows(view) {
  const { names, before, after, is_moved: moved } = view.rows;
  $("rows-note").textContent = view.is_made_up
    ? "The rows on the right are made up: whole rows differ, though single values are often still those of the person in that line. A draw for this page; the release is drawn anew."
    : "A draw for this page; the release is drawn anew. Bold: another value, or another bin.";
  const cell = (text, kind) => html("td", { class: kind, text, title: text });
  const line = (row, i) => html("tr", {}, ...row.flatMap((text, j) =>
    [cell(text, "was"), cell(after[i][j], moved[i][j] ? "is moved" : "is")]));
  const header = names.map((text) => html("th", { scope: "col", colspan: 2, text }));
  $("rows").replaceChildren(
    html("thead", {}, html("tr", {}, ...header)),
    html("tbody", {}, ...before.map(line)));
}

// Draws the curve; `choose` is called with points.
export function drawCurve(state, choices, choose) {
  const points = state.curve ?? [];
  const stops = [...new Set([...state.stops, ...points.map((d) => d.points)])].sort((a, b) => a - b);
  curve($("curve"), points, stops, state.closed ?? [], choices.points, choose);
}

// Draws anew what depends on the width of the page.
export function resized(state) {
  range($("range"), state.view.range);
  hints();
}
