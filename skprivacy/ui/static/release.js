// Section 6: a release, its files, and the same as a command and as a script.

import { post, save } from "./desk.js";
import { $, counted, html, inPoints, say, show } from "./dom.js";

const FILES = {
  "report.html": ["Report to sign", "for you, not for the recipient"],
  "mechanism.json": ["Mechanism", "to release other rows later"],
  "command.txt": ["Command", "the same in a terminal"],
  "release.py": ["Python script", "the same in Python"],
};

const complain = (error) => say("together", error.message);

export function askForRelease(state, choices) {
  const is_confirmed = Boolean(state.release?.warning);
  const handover = { purpose: $("for-what").value, recipient: $("for-whom").value };
  post("/release", { choices, ...handover, is_confirmed }).catch(complain);
}

// isWaiting : whether the state is older than the choices; change : goes back to other choices.
export function drawRelease(state, isWaiting, change) {
  const { view, release: now } = state;
  show("s-release", Boolean(view));
  if (!view) return;
  const isDone = Boolean(now) && !now.warning && !now.report?.error;
  $("draw").disabled = view.is_near || isWaiting || isDone;
  $("draw").textContent = named(now);
  handedOver(now?.handover);
  $("others").replaceChildren(...state.releases.map((other) => shownAgain(other, change)));
  say("together", now?.warning ? `This would be release ${state.n_releases + 1} of this table. ${now.warning} Give away one release only, or sign for both.` : "");
  $("command").textContent = now?.command ?? (view.is_near ? "" : view.command);
  $("script").textContent = now?.script ?? (view.is_near ? "" : view.script);
  $("files").replaceChildren(...(now?.is_drawn ? files(now) : []));
}

// What the release is for, and who gets it: fixed once it is drawn, for the report says so.
function handedOver(said) {
  for (const [id, name] of [["for-what", "purpose"], ["for-whom", "recipient"]]) {
    const box = $(id);
    if (said && !box.readOnly) box.dataset.typed = box.value;
    if (said) box.value = said[name] ?? "";
    else if (box.readOnly) box.value = box.dataset.typed;
    box.readOnly = Boolean(said);
  }
}

// A way back to another release of this table.
function shownAgain({ number, choices }, change) {
  const text = `Go back to release ${number} (${inPoints(choices.points)})`;
  return html("button", { type: "button", text, onclick: () => change(choices) });
}

function named(now) {
  if (!now) return "Release";
  if (now.warning) return "Release anyway";
  if (now.report?.error) return "Write the report again";
  return now.is_drawn ? "Released" : "Drawing …";
}

function files(now) {
  const numbered = (name) => now.number === 1 ? name : name.replace(".", `-${now.number}.`);
  const known = Object.keys(FILES).filter((name) => now.files.includes(numbered(name)));
  const buttons = [
    button(now, now.out, "Released table", `${now.out}, for the recipient`),
    ...known.map((name) => button(now, numbered(name), ...FILES[name])),
  ];
  const soft = (text) => html("p", { class: "soft", text });
  return [
    html("p", { text: `Drawn: ${counted(now.rows)} rows. Save what you need; all of it is removed when the program ends.` }),
    html("div", { class: "list" }, ...buttons),
    now.report?.error
      ? html("p", { class: "alert", text: `The release is complete, but there is no report: ${now.report.error}` })
      : soft(now.report ? "The report is there: read what to do before you sign." : "The report is being written: it attacks the release, which can take a minute."),
    ...now.notes.map((text) => soft(`The mechanism was not saved: ${text}`)),
  ];
}

function button(now, name, text, small) {
  const onclick = () => save(now.folder, name).catch(complain);
  return html("button", { type: "button", "data-file": name, onclick }, text, html("small", { text: small }));
}

for (const copy of document.querySelectorAll("[data-copy]")) {
  copy.onclick = async () => {
    const text = copy.textContent;
    await navigator.clipboard.writeText($(copy.dataset.copy).textContent);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = text; }, 1500);
  };
}
