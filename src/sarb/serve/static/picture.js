// A photo on a canvas, with a heat map over it.

// Colours for values 0..255: transparent, yellow, orange, red; the same as .scale in style.css.
// Where there is little attention, the photo stays visible.
const STOPS = [
  { at: 0, rgba: [255, 225, 120, 0] },
  { at: 0.4, rgba: [255, 225, 120, 0] },
  { at: 0.65, rgba: [255, 200, 60, 90] },
  { at: 0.85, rgba: [255, 122, 26, 130] },
  { at: 1, rgba: [225, 20, 50, 160] },
];

function colour(value) {
  const fraction = value / 255;
  const next = Math.max(1, STOPS.findIndex((stop) => stop.at >= fraction));
  const before = STOPS[next - 1];
  const after = STOPS[next];
  const share = (fraction - before.at) / (after.at - before.at);
  return before.rgba.map((channel, index) => channel + share * (after.rgba[index] - channel));
}

export function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

// Turns a grid [height, width] of bytes into a canvas with one pixel per byte.
export function heatMap([height, width], bytes) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const pixels = new ImageData(width, height);
  bytes.forEach((value, index) => pixels.data.set(colour(value), 4 * index));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.photo = null;
    this.heat = null;
  }

  show(photo) {
    this.photo = photo;
    this.canvas.width = photo ? photo.width : 1;
    this.canvas.height = photo ? photo.height : 1;
    this.draw();
  }

  lay(heat) {
    this.heat = heat;
    this.draw();
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    context.clearRect(0, 0, width, height);
    if (this.photo) context.drawImage(this.photo, 0, 0, width, height);
    if (this.photo && this.heat) {
      context.imageSmoothingEnabled = true;
      context.imageSmoothingQuality = "high";
      context.drawImage(this.heat, 0, 0, width, height);
    }
    this.canvas.dataset.heat = this.heat && this.photo ? "shown" : "";
  }
}
