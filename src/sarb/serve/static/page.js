// What the parts of the page share.

export const byId = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function notice(text = "") {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

export const percent = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

// A refusal of the server has .status; without it the server was not reached.
export async function request(path, options = {}) {
  const reply = await fetch(path, options);
  if (reply.ok) return reply;
  const said = await reply.json().catch(() => ({}));
  const detail = typeof said.detail === "string" ? said.detail : `${reply.status} ${reply.statusText}`;
  throw Object.assign(new Error(detail), { status: reply.status });
}

export const post = async (path, body) =>
  (await request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();
