// A photo on a canvas with a heat map laid over it.

// colour of a value 0..255: transparent, yellow, orange, red; the same as .scale in style.css. Little attention leaves
// the photo as it is, so that one can still see what it shows.
const STOPS = [[0, 255, 225, 120, 0], [0.4, 255, 225, 120, 0], [0.65, 255, 200, 60, 90], [0.85, 255, 122, 26, 130], [1, 225, 20, 50, 160]];

function colour(value) {
  const place = value / 255;
  let next = STOPS.findIndex((stop) => stop[0] >= place);
  next = Math.max(next, 1);
  const [from, to] = [STOPS[next - 1], STOPS[next]];
  const share = (place - from[0]) / (to[0] - from[0]);
  return [1, 2, 3, 4].map((part) => from[part] + share * (to[part] - from[part]));
}

export function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// grid [height, width] and bytes -> a canvas of that many pixels
export function heatMap([height, width], bytes) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const pixels = new ImageData(width, height);
  bytes.forEach((value, place) => pixels.data.set(colour(value), 4 * place));
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
    const pen = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    pen.clearRect(0, 0, width, height);
    if (this.photo) pen.drawImage(this.photo, 0, 0, width, height);
    if (this.photo && this.heat) {
      pen.imageSmoothingEnabled = true;
      pen.imageSmoothingQuality = "high";
      pen.drawImage(this.heat, 0, 0, width, height);
    }
    this.canvas.dataset.heat = this.heat && this.photo ? "shown" : "";
  }
}
