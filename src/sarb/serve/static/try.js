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
    files.value = ""; // the same photo may be chosen again
  });
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  // a photo dropped beside the field must not replace the page
  for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
  drop.addEventListener("drop", (event) => send([...event.dataTransfer.files]));
}

async function send(files) {
  notice();
  const places = files.map((file) => element("article", { className: "card photo" }, element("p", { className: "hint", textContent: `${file.name} …` })));
  byId("photos").prepend(...places);
  for (const [number, file] of files.entries()) {
    try {
      if (file.size > limit) throw new Error(`${file.name}: too large, at most ${Math.floor(limit / 1048576)} MB`);
      const form = new FormData();
      form.append("photos", file);
      const [found] = await (await request("/api/predict", { method: "POST", body: form })).json();
      if (found.error) throw new Error(found.error);
      await fill(places[number], found);
    } catch (error) {
      places[number].replaceChildren(element("p", { className: "error", role: "alert", textContent: error.status || error.name === "Error" ? error.message : `${file.name}: the server cannot be reached` }));
    }
  }
}

async function fill(place, found) {
  const canvas = element("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", found.name);
  const picture = new Picture(canvas);
  picture.show(await createImageBitmap(new Blob([fromBase64(found.preview)], { type: "image/jpeg" })));
  const list = element("ul", { className: "labels" });
  const state = { pinned: null };
  const rows = found.labels.map((label) => row(label, found.grid, picture, state));
  list.append(...rows.slice(0, SHOWN));
  const scale = element("p", { className: "scale" }, "looked little", element("i"), "looked most");
  const right = element("div", {}, element("h2", { textContent: found.name }), list);
  if (rows.length > SHOWN) {
    const more = element("button", { className: "more", textContent: `Show all ${rows.length}` });
    more.addEventListener("click", () => { list.append(...rows.slice(SHOWN)); more.remove(); });
    right.append(more);
  }
  place.replaceChildren(element("div", {}, element("figure", { className: "stage" }, canvas), scale), right);
}

function row(label, grid, picture, state) {
  const fillBar = element("i");
  fillBar.style.width = `${100 * label.probability}%`;
  const button = element("button", { type: "button" },
    element("span", { className: label.present ? "name present" : "name", textContent: label.label }),
    element("span", { className: "value", textContent: percent(label.probability) }),
    element("span", { className: "meter" }, fillBar));
  button.dataset.label = label.label;
  button.setAttribute("aria-pressed", "false");
  let heat = null;
  const own = () => (heat ??= heatMap(grid, fromBase64(label.heat)));
  for (const kind of ["mouseenter", "focus"]) button.addEventListener(kind, () => picture.lay(own()));
  for (const kind of ["mouseleave", "blur"]) button.addEventListener(kind, () => picture.lay(state.pinned && state.pinned.heat));
  button.addEventListener("click", () => {
    const before = state.pinned;
    if (before) before.button.setAttribute("aria-pressed", "false");
    state.pinned = before && before.button === button ? null : { button, heat: own() };
    if (state.pinned) button.setAttribute("aria-pressed", "true");
    picture.lay(own());
  });
  return element("li", {}, button);
}
