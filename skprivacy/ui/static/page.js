// The page: shows the state that the server sends, and sends the choices that are made.

import { drawColumns, named, updateColumns } from "./columns.js";
import { listen, post, upload } from "./desk.js";
import { $, counted, html, inPoints, say, show } from "./dom.js";
import { askForRelease, drawRelease } from "./release.js";
import { drawCurve, drawResult, resized } from "./result.js";

const NOTHING = $("what").textContent;

const DEMO = {
  roles: { sex: "protect", blood_pressure: "randomise", bmi: "randomise" },
  purpose: "near",
  target: null,
  points: 10,
  population: true,
  bins: 3,
  pooled: null,
  ordered: {},
};

let state = { stops: [] };
let choices = null;

// Sends what was chosen. -------------------------------------------------------------------------

let changes = 0; // how often something was changed here
let sent = 0; // how many of these the server has heard
let asked = 0; // the number of the last one, as the server counts those of all tabs
let refusal = "";
let timer = 0;
let last = Promise.resolve();

// Whether the state is older than our choices.
const isWaiting = () => sent < changes || state.asked < asked;

function send() {
  const change = changes += 1;
  clearTimeout(timer);
  timer = setTimeout(() => {
    last = last.then(async () => {
      try {
        asked = (await (await post("/choices", choices)).json()).asked;
        refusal = "";
      } catch (error) {
        refusal = error.message;
      }
      sent = change;
      render();
    });
  }, 60);
}

function change(values) {
  choices = { ...choices, ...values };
  controls();
  send();
}

async function attempt(what) {
  try {
    await what();
    say("error", "");
  } catch (error) {
    say("error", error.message);
  }
}

// 1. Open ----------------------------------------------------------------------------------------

// Whether the choices for the table that is open may be forgotten.
function mayLeave() {
  const { table } = state;
  const isLost = table && !table.is_demo && Object.keys(choices?.roles ?? {}).length > 0;
  return !isLost || confirm(`Open another table? Your choices for ${table.name} are forgotten. Its releases come back when you open it again.`);
}

const open = ([file]) => { if (file && mayLeave()) attempt(() => upload(file)); };
$("demo").onclick = () => { if (mayLeave()) attempt(() => post("/demo")); };
$("by-path").onsubmit = (event) => {
  event.preventDefault();
  if (mayLeave()) attempt(() => post("/open", { path: $("path").value.trim() }));
};
$("separates").onclick = () => attempt(() => post("/delimiter"));
$("is-header").onclick = () => attempt(() => post("/header", { is_header: true }));
$("is-row").onclick = () => attempt(() => post("/header", { is_header: false }));
$("file").onchange = () => {
  open($("file").files);
  $("file").value = "";
};
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  $("drop").addEventListener(kind, () => {
    $("drop").classList.toggle("over", kind === "dragenter" || kind === "dragover");
  });
}
$("drop").addEventListener("drop", (event) => open(event.dataTransfer.files));
for (const kind of ["dragover", "drop"]) {
  addEventListener(kind, (event) => event.preventDefault()); // not opened by the browser
}

// 2. Columns -------------------------------------------------------------------------------------

function choose(name, role) {
  // In the order of the table: the same choices give the same release, whatever was chosen first.
  const given = { ...choices.roles, [name]: role };
  const names = state.table.columns.map((column) => column.name);
  const kept = names.filter((each) => given[each] && given[each] !== "drop");
  const roles = Object.fromEntries(kept.map((each) => [each, given[each]]));
  const isTarget = !["protect", "beside"].includes(roles[choices.target]);
  change({ roles, target: isTarget ? choices.target : null });
}

function reorder(name, texts) {
  const { [name]: _, ...others } = choices.ordered;
  change({ ordered: texts === null ? others : { ...others, [name]: texts } });
}

$("secret").onchange = () => attempt(() => post("/secret", { is_shown: $("secret").checked }));
$("name-it").onclick = () => attempt(() => post("/secret", { is_shown: true }));

// 3. Purpose, 4. Protection ----------------------------------------------------------------------

const purposes = document.getElementsByName("purpose");
for (const radio of purposes) radio.onchange = () => change({ purpose: radio.value });
$("target").onchange = () => change({ target: $("target").value || null });
$("slider").oninput = () => change({ points: state.stops[$("slider").value] });
$("population").onchange = () => change({ population: $("population").checked });
numbered("exact", (points) => ({ points }));
numbered("bins", (bins) => ({ bins: Math.round(bins) }));
numbered("pooled", (pooled) => ({ pooled: pooled === null ? null : Math.round(pooled) }), true);
$("cancel").onclick = () => attempt(() => post("/cancel"));
$("go-on").onclick = send;
$("pool").onclick = () => change({ pooled: 6, bins: Math.min(choices.bins, 6) });

// A box for a number changes the choices, if it holds one in its range.
function numbered(id, changed, mayBeEmpty = false) {
  const box = $(id);
  box.onchange = () => {
    const value = box.value === "" ? null : Number(box.value);
    if (box.checkValidity() && (mayBeEmpty || value !== null)) change(changed(value));
    else box.reportValidity();
  };
}

// Shows the choices on their controls.
function controls() {
  const { points, purpose } = choices;
  const closed = state.closed ?? [];
  const far = state.stops.map((stop) => Math.abs(stop - points));
  for (const radio of purposes) radio.checked = radio.value === purpose;
  show("target-line", purpose === "predict");
  targets();
  $("slider").value = far.indexOf(Math.min(...far));
  $("slider").setAttribute("aria-valuetext", inPoints(points));
  $("points").textContent = inPoints(points);
  for (const [id, value] of [["exact", points], ["bins", choices.bins], ["pooled", choices.pooled]]) {
    if (document.activeElement !== $(id)) $(id).value = value ?? "";
  }
  $("population").checked = choices.population;
  const kind = (stop) => closed.includes(stop) ? "closed" : stop === points ? "chosen" : "";
  $("ticks").replaceChildren(...state.stops.map((stop) => html("span", { text: stop, class: kind(stop) })));
  updateColumns(state, choices, reorder);
}

// The columns that can be predicted.
function targets() {
  const none = [...named(choices, "protect"), ...named(choices, "beside")];
  const names = state.table.columns.map((column) => column.name).filter((name) => !none.includes(name));
  const key = JSON.stringify(names);
  if ($("target").dataset.key !== key) {
    $("target").dataset.key = key;
    $("target").replaceChildren(
      html("option", { value: "", text: "choose a column" }),
      ...names.map((name) => html("option", { value: name, text: name })));
  }
  $("target").value = choices.target ?? "";
  $("target-note").textContent = targetNote();
}

function targetNote() {
  if (!choices.target) return "";
  return choices.roles[choices.target] === "randomise"
    ? "It is released: drawn with each row from the other columns, within the same limit."
    : "It is left out of the release. To release it too, set it to randomise in step 2.";
}

// What is being done. ----------------------------------------------------------------------------

const KIND = {
  look: "Reading the table",
  given_away: "Measuring what each column tells",
  terms: "Counting the rows",
  together: "Computing what the releases reveal together",
  release: "Drawing the release",
  report: "Writing the report, which attacks the release",
};

let began = 0;

function busy() {
  show("busy", Boolean(state.busy));
  if (!state.busy) return;
  began = performance.now() - 1000 * state.busy.seconds;
  $("busy").classList.toggle("aside", !state.busy.waited_for);
  tick();
}

function tick() {
  const now = state.busy;
  if (!now) return;
  const seconds = Math.floor((performance.now() - began) / 1000);
  const designing = now.waited_for ? "Designing for" : "Filling in the curve:";
  const what = KIND[now.kind] ?? `${designing} ${inPoints(now.points)}`;
  const doing = now.doing && seconds >= 1 ? `: ${now.doing}` : "";
  $("busy-text").textContent = `${what}${doing} … ${seconds} s`;
}
setInterval(tick, 500);

// 6. Release -------------------------------------------------------------------------------------

$("release").onsubmit = (event) => {
  event.preventDefault();
  askForRelease(state, choices);
};

// Shows the state. -------------------------------------------------------------------------------

const shown = {};

// Whether a part of the state is another one than was shown.
function isNew(part, value) {
  const text = JSON.stringify(value ?? null);
  const is = shown[part] !== text;
  shown[part] = text;
  return is;
}

function render() {
  const { table } = state;
  if (isNew("error", state.error)) {
    say("error", state.error);
    if (state.error && !table) $("open").open = true;
  }
  show("first-line", state.asks_for === "header");
  show("one-column", state.asks_for === "delimiter");
  busy();
  const isOpen = Boolean(table?.columns.length);
  for (const id of ["s-columns", "s-purpose", "slide"]) show(id, isOpen);
  if (isOpen) renderTable(table);
  else renderNothing(table);
}

function renderNothing(table) {
  for (const id of ["result", "s-look", "s-release", "problem", "go-on", "many"]) show(id, false);
  $("what").textContent = table?.name ?? NOTHING;
  $("opened").textContent = "";
  say("hint", table ? `Reading ${table.name} …` : "Open a table, or try the demo. Then say what to protect and what to randomise.");
}

function renderTable(table) {
  if (isNew("table", table.number)) opened(table);
  if (!isWaiting() && state.asked > asked) { // another tab chose, with our secret
    choices = state.choices;
    asked = state.asked;
  }
  if (isNew("controls", [choices, state.closed, state.given_away, state.shows_secret, table.columns])) controls();
  problem();
  if (isNew("view", [state.view, choices.points, state.problem, Boolean(state.busy)])) drawResult(state, choices);
  if (isNew("curve", [state.curve, state.closed, choices.points])) redrawCurve();
  if (isNew("release", [state.release, state.releases, state.view?.command, state.view?.is_near, isWaiting()])) drawRelease(state, isWaiting(), change);
}

function opened(table) {
  const isNewDemo = table.is_demo && !Object.keys(state.choices.roles).length;
  const part = table.rows > table.looked_at ? `, columns described by ${counted(table.looked_at)} of them` : "";
  choices = isNewDemo ? DEMO : state.choices;
  asked = state.asked;
  $("what").textContent = `${table.name}: ${counted(table.rows)} rows, ${table.columns.length} columns${part}`;
  $("opened").textContent = table.name.split(/[\\/]/).at(-1);
  $("open").open = false;
  drawColumns(table.columns, choose);
  if (isNewDemo) send();
}

// What is missing, or keeps the choices from being shown.
function problem() {
  const said = isWaiting() ? "" : refusal || state.problem;
  const isHint = said.startsWith("Say ") && !state.view;
  say("hint", isHint ? said : "");
  say("problem", isHint ? "" : said);
  $("problem").classList.toggle("calm", Boolean(state.is_stopped));
  show("go-on", said && state.is_stopped);
  show("many", Boolean(state.combinations) && state.busy?.waited_for && !choices.pooled);
  $("many").firstElementChild.textContent = `There are ${counted(state.combinations ?? 0)} combinations of values: a design may take a while.`;
}

const redrawCurve = () => drawCurve(state, choices, (points) => change({ points }));

let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    if (!state.view) return;
    resized(state);
    redrawCurve();
  }, 150);
});

function hear(next) {
  state = next;
  say("gone", "");
  render();
}

function lost(why) {
  say("gone", why);
  say("error", "");
  state = { ...state, busy: null };
  busy();
}

listen(hear, lost);
