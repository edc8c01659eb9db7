// Helpers shared by all parts of the page.

export const byId = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

export function notice(text = "") {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

export const percent = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

// An error reply of the server has .status; without it, the server could not be reached.
export async function request(path, options = {}) {
  const reply = await fetch(path, options);
  if (reply.ok) return reply;
  const { detail } = await reply.json().catch(() => ({}));
  const message = typeof detail === "string" ? detail : `${reply.status} ${reply.statusText}`;
  throw Object.assign(new Error(message), { status: reply.status });
}

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const reply = await request(path, { method: "POST", headers, body: JSON.stringify(body) });
  return reply.json();
}
