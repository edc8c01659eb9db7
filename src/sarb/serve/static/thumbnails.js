// Small photos, loaded ahead and kept as elements: the next page of the wall appears at once.
import { request } from "./page.js";
import { RETRY } from "./outbox.js";

const MOST = 54; // a page, the next one, and a few more

export class Thumbnails {
  // changed is called when one of them is there, or turns out to be broken
  constructor(changed) {
    this.changed = changed;
    this.images = new Map(); // number of a photo -> image element
    this.state = new Map(); // number of a photo -> "ready" or "broken"
  }

  of(number) {
    const image = this.images.get(number) ?? new Image();
    const known = this.images.delete(number);
    this.images.set(number, image); // last in line to be forgotten
    if (!known) {
      image.alt = "";
      this.load(number, image);
      if (this.images.size > MOST) this.forget(this.images.keys().next().value);
    }
    return image;
  }

  forget(number) {
    this.images.delete(number);
    this.state.delete(number);
  }

  settled = (number) => this.state.has(number);

  broken = (number) => this.state.get(number) === "broken";

  async load(number, image) {
    const address = `/api/images/${number}/small`;
    const state = await new Promise((resolve) => {
      image.onload = () => resolve("ready");
      image.onerror = () => resolve("broken");
      image.src = address;
    });
    if (state === "broken" && await unreachable(address)) {
      setTimeout(() => this.load(number, image), RETRY);
      return;
    }
    this.state.set(number, state);
    this.changed();
  }
}

// An image element does not say why it failed: a bad file is final, a lost connection is not.
async function unreachable(address) {
  try {
    await request(address);
    return true;
  } catch (error) {
    return !error.status;
  }
}
