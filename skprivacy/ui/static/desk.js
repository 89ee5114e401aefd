// What the page asks of the server, and what it hears.

const ENDED = "The program has ended. Start skprivacy ui again, and open the new address.";

const secret = sessionStorage.getItem("secret") ?? "";

async function asked(path, options) {
  const answer = await fetch(path, { ...options, headers: { ...options.headers, "X-Skprivacy": secret } });
  if (answer.ok) return answer;
  const text = await answer.text();
  let said = text;
  try { said = JSON.parse(text).error ?? text; } catch { /* a text of the guard */ }
  throw new Error(said);
}

export const post = (path, data = {}) =>
  asked(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(data),
  });

export const upload = (file) =>
  asked("/upload", {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream", "X-Name": encodeURIComponent(file.name) },
    body: file,
  });

// Saves a file of a release. The request needs our header, which a plain link cannot send.
export async function save(folder, name) {
  const answer = await asked(`/download/${folder}/${name}`, { method: "GET" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// Calls `hear` with each state, and `lost` with a reason whenever the server cannot be heard.
export async function listen(hear, lost) {
  for (;;) {
    try {
      const answer = await asked("/events", { method: "GET" });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (text + value).split("\n");
        text = lines.pop();
        const last = lines.findLast((line) => line);
        if (last) hear(JSON.parse(last));
      }
      lost(ENDED);
    } catch (error) {
      const isRefused = !(error instanceof TypeError);
      lost(isRefused ? `This tab is not the one that the address opened. ${error.message}` : ENDED);
      if (isRefused) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}
