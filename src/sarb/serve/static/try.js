// Try: photos in, labels with probabilities and heat maps out.
import { byId, element, notice, percent, request } from "./page.js";
import { Picture, fromBase64, heatMap } from "./picture.js";

const SHOWN = 10;
let limit = 0;

export function startTry(info) {
  limit = info.max_upload;
  const drop = byId("drop");
  const files = byId("files");
  files.addEventListener("change", () => {
    send([...files.files]);
    files.value = ""; // so that the same photo can be chosen again
  });
  listen(drop, ["dragenter", "dragover"], (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  listen(drop, ["dragleave", "drop"], () => drop.classList.remove("over"));
  // a photo dropped outside the field must not replace the page
  listen(window, ["dragover", "drop"], (event) => event.preventDefault());
  listen(drop, ["drop"], (event) => send([...event.dataTransfer.files]));
}

function listen(target, events, handler) {
  for (const event of events) target.addEventListener(event, handler);
}

async function send(files) {
  notice();
  const cards = files.map((file) => {
    const waiting = element("p", { className: "hint", textContent: `${file.name} …` });
    return element("article", { className: "card photo" }, waiting);
  });
  byId("photos").prepend(...cards);
  for (const [number, file] of files.entries()) {
    try {
      await fill(cards[number], await predict(file));
    } catch (error) {
      const told = error.status || error.name === "Error";
      const textContent = told ? error.message : `${file.name}: the server cannot be reached`;
      cards[number].replaceChildren(element("p", { className: "error", role: "alert", textContent }));
    }
  }
}

async function predict(file) {
  const megabytes = Math.floor(limit / 1048576);
  if (file.size > limit) throw new Error(`${file.name}: too large, at most ${megabytes} MB`);
  const form = new FormData();
  form.append("photos", file);
  const [photo] = await (await request("/api/predict", { method: "POST", body: form })).json();
  if (photo.error) throw new Error(photo.error);
  return photo;
}

async function fill(card, photo) {
  const canvas = element("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", photo.name);
  const picture = new Picture(canvas);
  picture.show(await createImageBitmap(new Blob([fromBase64(photo.preview)], { type: "image/jpeg" })));
  const list = element("ul", { className: "labels" });
  const state = { pinned: null };
  const rows = photo.labels.map((label) => row(label, photo.grid, picture, state));
  list.append(...rows.slice(0, SHOWN));
  const scale = element("p", { className: "scale" }, "little attention", element("i"), "most attention");
  const right = element("div", {}, element("h2", { textContent: photo.name }), list);
  if (rows.length > SHOWN) {
    const more = element("button", { className: "more", textContent: `Show all ${rows.length}` });
    more.addEventListener("click", () => {
      list.append(...rows.slice(SHOWN));
      more.remove();
    });
    right.append(more);
  }
  const left = element("div", {}, element("figure", { className: "stage" }, canvas), scale);
  card.replaceChildren(left, right);
}

function row(label, grid, picture, state) {
  const bar = element("i");
  bar.style.width = `${100 * label.probability}%`;
  const button = element("button", { type: "button" },
    element("span", { className: label.present ? "name present" : "name", textContent: label.label }),
    element("span", { className: "value", textContent: percent(label.probability) }),
    element("span", { className: "meter" }, bar));
  button.dataset.label = label.label;
  button.title = `found from ${percent(label.threshold)} on`;
  button.setAttribute("aria-pressed", "false");
  let heat = null;
  const own = () => (heat ??= heatMap(grid, fromBase64(label.heat)));
  listen(button, ["mouseenter", "focus"], () => picture.lay(own()));
  listen(button, ["mouseleave", "blur"], () => picture.lay(state.pinned && state.pinned.heat));
  button.addEventListener("click", () => {
    const before = state.pinned;
    if (before) before.button.setAttribute("aria-pressed", "false");
    state.pinned = before && before.button === button ? null : { button, heat: own() };
    if (state.pinned) button.setAttribute("aria-pressed", "true");
    picture.lay(own());
  });
  return element("li", {}, button);
}
