/** Colour maps of images: each has 256 colours, between some that are given. */

export const MAPS = ["viridis", "grey", "heat", "red"] as const;
export type MapName = (typeof MAPS)[number];

/** Colours at equal distances, from the least to the largest value. */
const STOPS: Record<MapName, readonly (readonly [number, number, number])[]> = {
  viridis: [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]],
  grey: [[0, 0, 0], [255, 255, 255]],
  heat: [[0, 0, 0], [120, 0, 0], [230, 60, 0], [255, 170, 0], [255, 255, 120], [255, 255, 255]],
  red: [[10, 0, 0], [90, 14, 10], [190, 60, 50], [255, 130, 110]],
};

/** Colours as `0xAABBGGRR`: the bytes of a canvas, read as numbers. */
export function coloursOf(name: MapName): Uint32Array {
  const stops = STOPS[name];
  return Uint32Array.from({ length: 256 }, (_, nth) => {
    const at = (nth / 255) * (stops.length - 1);
    const lower = Math.min(Math.floor(at), stops.length - 2);
    const mixed = [0, 1, 2].map((part) => {
      const [from, to] = [stops[lower]?.[part] ?? 0, stops[lower + 1]?.[part] ?? 0];
      return Math.round(from + (to - from) * (at - lower));
    });
    return ((255 << 24) | ((mixed[2] ?? 0) << 16) | ((mixed[1] ?? 0) << 8) | (mixed[0] ?? 0)) >>> 0;
  });
}

/** Least and largest of elements that are numbers. */
export function extent(elements: ArrayLike<number | bigint | boolean>): [number, number] {
  let [min, max] = [Infinity, -Infinity];
  for (let nth = 0; nth < elements.length; nth++) {
    const value = Number(elements[nth]);
    if (Number.isFinite(value)) {
      min = value < min ? value : min;
      max = value > max ? value : max;
    }
  }
  return [min, max];
}

/** Paints elements into pixels. A value that is no number is transparent. */
export function paint(elements: ArrayLike<number | bigint | boolean>, pixels: Uint32Array, min: number, max: number, colours: Uint32Array): void {
  const scale = max > min ? 255 / (max - min) : 0;
  for (let nth = 0; nth < pixels.length; nth++) {
    const value = Number(elements[nth]);
    const at = Math.round((value - min) * scale);
    pixels[nth] = Number.isNaN(value) ? 0 : (colours[at < 0 ? 0 : at > 255 ? 255 : at] ?? 0);
  }
}
