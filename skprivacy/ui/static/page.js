// The page: shows the state that the server sends, and sends the choices that are made.

import { bars, curve, html, percent, range, swaps } from "./charts.js";
import { listen, post, save, upload } from "./desk.js";

const $ = (id) => document.getElementById(id);
const show = (id, is) => { $(id).hidden = !is; };
const say = (id, text) => { $(id).textContent = text; show(id, Boolean(text)); };
const counted = (n) => n.toLocaleString("en");

let state = { stops: [] };
let choices = null;
const DEMO = { roles: { sex: "protect", blood_pressure: "randomise", bmi: "randomise" }, purpose: "near", target: null, points: 10, population: true, bins: 3, pooled: null, ordered: {} };

// Sends what was chosen. -------------------------------------------------------------------------

async function attempt(what, place = "error") {
  try { await what(); say(place, ""); } catch (error) { say(place, error.message); }
}

let timer = 0;
let isWaiting = false; // our own choices are newer than those in the state
function send() {
  clearTimeout(timer);
  isWaiting = true;
  timer = setTimeout(async () => {
    await attempt(() => post("/choices", choices), "problem");
    isWaiting = false;
    render();
  }, 60);
}

function change(values) {
  choices = { ...choices, ...values };
  controls();
  send();
}

const named = (role) => Object.keys(choices.roles).filter((name) => choices.roles[name] === role);
const listed = (names) => names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

// 1. Open ----------------------------------------------------------------------------------------

const opening = (what) => attempt(what);
$("demo").onclick = () => opening(() => post("/demo"));
$("by-path").onsubmit = (e) => { e.preventDefault(); opening(() => post("/open", { path: $("path").value.trim() })); };
$("is-header").onclick = () => opening(() => post("/header", { is_header: true }));
$("is-row").onclick = () => opening(() => post("/header", { is_header: false }));
$("file").onchange = (e) => { const [file] = e.target.files; if (file) opening(() => upload(file)); e.target.value = ""; };
for (const kind of ["dragenter", "dragover"]) $("drop").addEventListener(kind, (e) => { e.preventDefault(); $("drop").classList.add("over"); });
for (const kind of ["dragleave", "drop"]) $("drop").addEventListener(kind, (e) => { e.preventDefault(); $("drop").classList.remove("over"); });
$("drop").addEventListener("drop", (e) => { const [file] = e.dataTransfer.files; if (file) opening(() => upload(file)); });
for (const kind of ["dragover", "drop"]) addEventListener(kind, (e) => e.preventDefault()); // not opened by the browser

// 2. Columns -------------------------------------------------------------------------------------

const ROLES = { drop: "leave out", protect: "protect", randomise: "randomise", beside: "publish as it is" };

function columns() {
  const body = $("columns").tBodies[0];
  body.replaceChildren(...state.table.columns.map((column, i) => {
    const select = html("select", { id: `role-${i}`, "aria-label": `What happens to ${column.name}` },
      ...Object.entries(ROLES).map(([role, text]) => html("option", { value: role, text })));
    select.onchange = () => {
      // In the order of the table: the same choices give the same release, whatever was chosen first.
      const given = { ...choices.roles, [column.name]: select.value };
      const roles = Object.fromEntries(state.table.columns.map(({ name }) => [name, given[name]]).filter(([, role]) => role && role !== "drop"));
      change({ roles, target: roles[choices.target] === "protect" ? null : choices.target });
    };
    const facts = `${column.kind}, ${counted(column.distinct)} distinct${column.missing ? `, ${counted(column.missing)} missing` : ""}`;
    return html("tr", {}, html("th", { scope: "row" }, html("strong", { text: column.name }), html("small", { text: facts }),
      html("small", { class: "examples" }), column.is_name ? html("small", { class: "danger", text: "almost every row has its own: leave it out" }) : null,
      html("span", { class: "tells", id: `tells-${i}` }), html("details", { class: "order", id: `order-${i}`, hidden: true })), html("td", {}, select));
  }));
}

function updateColumns() {
  const protect = named("protect"), tells = state.given_away ?? {};
  state.table.columns.forEach((column, i) => {
    const role = choices.roles[column.name] ?? "drop", select = $(`role-${i}`);
    select.value = role; select.className = `role-${role}`;
    const examples = select.closest("tr").querySelector(".examples");
    examples.textContent = role === "protect" && !state.shows_secret ? "values are not shown" : column.examples.join(", ");
    const share = tells[column.name], place = $(`tells-${i}`);
    place.replaceChildren();
    if (share !== undefined && share !== null && role !== "protect" && !column.is_name) {
      place.innerHTML = '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="8"></rect><rect class="part" height="8"></rect></svg>';
      place.querySelector(".part").setAttribute("width", Math.max(0.8, 100 * share));
      place.append(html("small", { text: `tells ${percent(share, share < 0.1 ? 1 : 0)} of ${listed(protect)}` }));
      place.title = `Alone, it gives away ${percent(share)} of all there is to know about ${listed(protect)}`;
    }
    order(column, $(`order-${i}`), role);
  });
  show("secret-line", protect.length > 0);
  $("secret").checked = Boolean(state.shows_secret);
}

// The order of texts that are a scale.
function order(column, place, role) {
  const offered = column.scale.length > 0 && role === "randomise", now = choices.ordered[column.name];
  place.hidden = !offered;
  const key = JSON.stringify([offered, now, column.scale]);
  if (!offered || place.dataset.key === key) return;
  place.dataset.key = key;
  const texts = now ?? column.scale, id = `${place.id}-is`;
  const set = (values) => change({ ordered: { ...choices.ordered, [column.name]: values } });
  const moved = (j, by) => { const next = [...texts]; [next[j], next[j + by]] = [next[j + by], next[j]]; set(next); };
  const box = html("input", { type: "checkbox", id });
  box.checked = Boolean(now);
  box.onchange = () => { if (box.checked) set(texts); else { const rest = { ...choices.ordered }; delete rest[column.name]; change({ ordered: rest }); } };
  const button = (text, label, j, by) => { const b = html("button", { type: "button", text, "aria-label": `${label}: ${texts[j]}`, disabled: j + by < 0 || j + by >= texts.length }); b.onclick = () => moved(j, by); return b; };
  const focused = document.activeElement?.getAttribute("aria-label");
  place.replaceChildren(html("summary", { text: now ? "A scale, in this order" : "Are these texts a scale?" }),
    html("label", { class: "check" }, box, "They are a scale, from first to last"),
    html("ol", {}, ...texts.map((text, j) => html("li", {}, html("span", { text }), button("↑", "Earlier", j, -1), button("↓", "Later", j, 1)))));
  if (focused) [...place.querySelectorAll("button")].find((b) => b.getAttribute("aria-label") === focused)?.focus();
}

$("secret").onchange = () => attempt(() => post("/secret", { is_shown: $("secret").checked }));

// 3. Purpose, 4. Protection ----------------------------------------------------------------------

for (const radio of document.getElementsByName("purpose")) radio.onchange = () => change({ purpose: radio.value });
$("target").onchange = () => change({ target: $("target").value || null });
$("slider").oninput = () => change({ points: state.stops[$("slider").value] });
$("population").onchange = () => change({ population: $("population").checked });
const inRange = (id) => { const box = $(id); return box.value !== "" && box.checkValidity(); };
$("exact").onchange = () => { if (inRange("exact")) change({ points: Number($("exact").value) }); else $("exact").reportValidity(); };
$("bins").onchange = () => { if (inRange("bins")) change({ bins: Math.round(Number($("bins").value)) }); };
$("pooled").onchange = () => { if ($("pooled").checkValidity()) change({ pooled: $("pooled").value === "" ? null : Math.round(Number($("pooled").value)) }); };
$("cancel").onclick = () => attempt(() => post("/cancel"));
$("pool").onclick = () => change({ pooled: 6, bins: Math.min(choices.bins, 6) });

// Shows the choices on their controls.
function controls() {
  const { points } = choices, at = state.stops.indexOf(points);
  for (const radio of document.getElementsByName("purpose")) radio.checked = radio.value === choices.purpose;
  show("target-line", choices.purpose === "predict");
  const names = state.table.columns.map((c) => c.name).filter((name) => !["protect", "beside"].includes(choices.roles[name]));
  if ($("target").dataset.names !== JSON.stringify(names)) {
    $("target").dataset.names = JSON.stringify(names);
    $("target").replaceChildren(html("option", { value: "", text: "choose a column" }), ...names.map((name) => html("option", { value: name, text: name })));
  }
  $("target").value = choices.target ?? "";
  const nearest = state.stops.reduce((best, p, i) => Math.abs(p - points) < Math.abs(state.stops[best] - points) ? i : best, 0);
  $("slider").value = at >= 0 ? at : nearest;
  const said = `${points} ${points === 1 ? "point" : "points"}`;
  $("slider").setAttribute("aria-valuetext", said);
  $("points").textContent = said;
  for (const [id, value] of [["exact", points], ["bins", choices.bins], ["pooled", choices.pooled ?? ""]]) if (document.activeElement !== $(id)) $(id).value = value;
  $("population").checked = choices.population;
  const closed = state.closed ?? [];
  $("ticks").replaceChildren(...state.stops.map((p) => html("span", { text: p, class: closed.includes(p) ? "closed" : p === points ? "chosen" : "" })));
  updateColumns();
}

// 4. Protection: what it means -------------------------------------------------------------------

const KIND = { look: "Reading the table", given_away: "Measuring what each column tells", terms: "Counting the rows", together: "Computing what the releases reveal together", release: "Drawing the release", report: "Writing the report, which attacks the release" };

let began = 0;
function busy() {
  const now = state.busy;
  show("busy", Boolean(now));
  if (!now) return;
  began = performance.now() - 1000 * now.seconds;
  $("busy").classList.toggle("aside", !now.waited_for);
  tick();
}
function tick() {
  const now = state.busy;
  if (!now) return;
  const seconds = Math.floor((performance.now() - began) / 1000);
  let what = KIND[now.kind] ?? (now.waited_for ? `Designing for ${now.points} points` : `Filling in the curve: ${now.points} points`);
  if (now.doing && seconds >= 1) what += `: ${now.doing}`;
  $("busy-text").textContent = `${what} … ${seconds} s`;
}
setInterval(tick, 500);

function result() {
  const view = state.view;
  show("result", Boolean(view)); show("s-look", Boolean(view)); show("s-release", Boolean(view));
  $("epsilon").textContent = view && !view.is_near ? `epsilon = ${view.epsilon}` : "";
  if (!view) return;
  const approx = view.is_near ? "≈ " : "";
  say("near", view.is_near ? `≈ A preview, from ${view.points} points. The figures for ${choices.points} points are not there yet.` : "");
  $("result").classList.toggle("old", view.is_near);
  if ($("sentence").textContent !== approx + (view.sentence_named ?? view.sentence)) $("sentence").textContent = approx + (view.sentence_named ?? view.sentence);
  range($("range"), view.range);
  const sign = { PASS: "✓", CAUTION: "!", FAIL: "✗" }[view.status] ?? "?";
  const words = view.verdict === "none" ? "No protection" : view.verdict === "unknown" ? "Protection is not known" : `${view.verdict[0].toUpperCase()}${view.verdict.slice(1)} protection`;
  $("verdict").replaceChildren(html("span", { class: `badge ${view.status}`, text: `${sign} ${view.status}: ${words}` }));
  $("lead").textContent = view.lead.replace(`${view.status}: `, "");
  document.title = `${approx}${view.points} points, ${view.kept_shown[0]} kept - skprivacy`;
  look(view, approx);
}

// 5. Look ----------------------------------------------------------------------------------------

function look(view, approx) {
  $("s-look").classList.toggle("old", view.is_near);
  show("made-up", view.is_made_up);
  const figure = (big, small) => html("div", {}, html("b", { text: approx + big }), html("span", { text: small }));
  const { right, blind, raw } = view.attacker, about = listed(named("protect"));
  $("figures").replaceChildren(
    figure(percent(right), `of ${about} guessed right by the best attacker, who sees a released row. Blindly: ${percent(blind)}. From the table as it is: ${percent(raw)}.`),
    figure(view.kept_shown[0], view.kept_text),
    figure(view.facts.fidelity.unchanged === null ? "–" : percent(view.facts.fidelity.unchanged), view.face_value));
  const [first, ...others] = view.warnings;
  $("warnings").replaceChildren(...(first ? [html("div", { class: "warn" }, html("p", {}, html("strong", { text: "Note: " }), first),
    others.length ? html("details", {}, html("summary", { text: `${others.length} more` }), html("ul", {}, ...others.map((text) => html("li", { text })))) : null)] : []));
  $("pairs").replaceChildren(...view.columns.map(pair));
  rows(view);
  hints();
}

function pair(column) {
  const said = [];
  if (column.unchanged !== null) said.push(`${percent(column.unchanged)} unchanged`);
  if (column.mean_shift !== null) said.push(`moves by ${Number(column.mean_shift.toPrecision(3))}${column.unit ? ` ${column.unit}` : ""} on average`);
  return html("section", { class: "pair", "aria-label": column.name }, html("h4", {}, column.name, html("small", { text: ` ${said.join(", ")}` })),
    html("div", { class: "both" }, bars(column), html("div", {}, html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `What each value of ${column.name} is released as` }, swaps(column)),
      html("p", { class: "more", hidden: true, text: "Scroll sideways inside the table to see all values." }))));
}

function hints() {
  for (const scroll of document.querySelectorAll(".pair .scroll")) scroll.nextElementSibling.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
}

function rows(view) {
  const { names, before, after, is_moved: moved } = view.rows;
  $("rows-note").textContent = view.is_made_up ? "The rows on the right are made up: a line is not one person before and after. A draw for this page; the release is drawn anew." : "A draw for this page; the release is drawn anew. Bold: another value, or another bin.";
  $("rows").replaceChildren(html("thead", {}, html("tr", {}, ...names.map((name) => html("th", { scope: "col", colspan: 2, text: name })))),
    html("tbody", {}, ...before.map((row, i) => html("tr", {}, ...row.flatMap((text, j) => [html("td", { class: "was", text, title: text }), html("td", { class: moved[i][j] ? "is moved" : "is", text: after[i][j], title: after[i][j] })])))));
}

// 6. Release -------------------------------------------------------------------------------------

const FILES = { "report.html": ["Report to sign", "for you, not for the recipient"], "mechanism.json": ["Mechanism", "to release other rows later"], "command.txt": ["Command", "the same in a terminal"], "release.py": ["Python script", "the same in Python"] };

$("release").onsubmit = (e) => {
  e.preventDefault();
  post("/release", { choices, purpose: $("for-what").value, recipient: $("for-whom").value, is_confirmed: Boolean(state.release?.warning) }).catch((error) => say("together", error.message));
};

function release() {
  const view = state.view, now = state.release;
  if (!view) return;
  $("draw").disabled = view.is_near || isWaiting || Boolean(now && !now.warning);
  $("draw").textContent = now?.warning ? "Release anyway" : now ? (now.is_drawn ? "Released" : "Drawing …") : "Release";
  say("together", now?.warning ? `You have released this table before, with other choices. ${now.warning} Give away one release only, or sign for both.` : "");
  $("command").textContent = now?.command ?? (view.is_near ? "" : view.command);
  $("script").textContent = now?.script ?? (view.is_near ? "" : view.script);
  const place = $("files");
  if (!now?.is_drawn) { place.replaceChildren(); return; }
  const button = (name, text, small) => { const b = html("button", { type: "button", "data-file": name }, text, html("small", { text: small })); b.onclick = () => save(now.folder, name).catch((error) => say("together", error.message)); return b; };
  const { report } = now;
  const parts = [html("p", { text: `Drawn: ${counted(now.rows)} rows. Save what you need; all of it is removed when the program ends.` }),
    html("div", { class: "list" }, button(now.out, "Released table", `${now.out}, for the recipient`), ...Object.entries(FILES).filter(([name]) => now.files.includes(name)).map(([name, [text, small]]) => button(name, text, small))),
    report ? null : html("p", { class: "soft", text: "The report is being written: it attacks the release, which can take a minute." }),
    report?.lead ? html("p", { class: "soft", text: "The report is there: read what to do before you sign." }) : null,
    report?.error ? html("p", { class: "alert", text: `The release is complete, but the report could not be written: ${report.error}` }) : null,
    ...now.notes.map((text) => html("p", { class: "soft", text: `The mechanism was not saved: ${text}` }))];
  place.replaceChildren(...parts.filter((part) => part !== null));
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.onclick = async () => { const text = button.textContent; await navigator.clipboard.writeText($(button.dataset.copy).textContent); button.textContent = "Copied"; setTimeout(() => { button.textContent = text; }, 1500); };
}

// Shows the state. -------------------------------------------------------------------------------

const shown = {};
const isNew = (part, value) => { const text = JSON.stringify(value ?? null); const is = shown[part] !== text; shown[part] = text; return is; };

function render() {
  const table = state.table, isOpen = Boolean(table?.columns.length);
  if (isNew("error", state.error)) { say("error", state.error); if (state.error && !table) $("open").open = true; }
  show("first-line", Boolean(state.asks_for_header));
  busy();
  for (const id of ["s-columns", "s-purpose", "slide"]) show(id, isOpen);
  if (!isOpen) { for (const id of ["result", "s-look", "s-release", "problem", "many"]) show(id, false); say("hint", table ? `Reading ${table.name} …` : "Open a table, or try the demo. Then say what to protect and what to randomise."); return; }
  const about = table.rows > table.looked_at ? `, columns described by ${counted(table.looked_at)} of them` : "";
  if (isNew("table", table.number)) {
    choices = table.is_demo && !Object.keys(state.choices.roles).length ? DEMO : state.choices;
    columns();
    $("open").open = false;
    if (choices === DEMO) send();
  }
  choices ??= state.choices;
  $("what").textContent = `${table.name}: ${counted(table.rows)} rows, ${table.columns.length} columns${about}`;
  $("opened").textContent = table.name.split(/[\\/]/).at(-1);
  if (isNew("controls", [choices, state.closed, state.given_away, state.shows_secret, table.columns])) controls();
  const waits = isWaiting ? "" : state.problem;
  const isMissing = waits && !state.view && waits.startsWith("Say ");
  say("hint", isMissing ? waits : "");
  say("problem", isMissing ? "" : waits);
  show("many", Boolean(state.combinations) && state.busy?.waited_for && !choices.pooled);
  if (state.combinations) $("many").firstElementChild.textContent = `There are ${counted(state.combinations)} combinations of values: a design may take a while.`;
  if (isNew("view", [state.view, choices.points])) result();
  if (isNew("curve", [state.curve, state.closed, choices.points])) drawCurve();
  if (isNew("release", [state.release, state.view?.command, state.view?.is_near, isWaiting])) release();
}

function drawCurve() {
  const stops = [...new Set([...state.stops, ...(state.curve ?? []).map((d) => d.points)])].sort((a, b) => a - b);
  curve($("curve"), state.curve ?? [], stops, state.closed ?? [], choices.points, (points) => change({ points }));
}

let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => { if (state.view) { range($("range"), state.view.range); drawCurve(); hints(); } }, 150); });

listen((next) => { state = next; say("gone", ""); render(); }, (why) => { say("gone", why); state = { ...state, busy: null }; busy(); });
