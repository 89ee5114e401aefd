// Small helpers: elements, and words.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

export const show = (id, is) => { $(id).hidden = !is; };

// Shows a text, or hides its place if there is none.
export const say = (id, text) => {
  $(id).textContent = text;
  show(id, Boolean(text));
};

const made = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node[name] = value;
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
};

export const html = (name, attributes = {}, ...children) =>
  made(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  made(document.createElementNS(SVG, name), attributes, children);

export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;

export const counted = (n) => n.toLocaleString("en");

export const inPoints = (n) => `${n} ${n === 1 ? "point" : "points"}`;

export const listed = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
