/** A part of the page as a picture: what is in sight of it, drawn once more. */

/** Pictures have twice the pixels of a plain screen, so that their words stay sharp. */
const SCALE = 2;
/** Longest side of a picture, pixels. */
const MOST = 8000;

/** Sizes of the names of traces, pixels. */
const NAMES = { size: 12, line: 20, mark: 16, gap: 12 };

const isSeen = (colour: string): boolean => colour !== "transparent" && !/rgba\(.*, 0\)$/.test(colour);

function fontOf({ fontStyle, fontWeight, fontSize, fontFamily }: CSSStyleDeclaration): string {
  return `${fontStyle} ${fontWeight} ${fontSize} ${fontFamily}`;
}

/** Draws a shape of an SVG; its places are those of the SVG. */
function drawShape(context: CanvasRenderingContext2D, shape: SVGElement, style: CSSStyleDeclaration): void {
  const number = (name: string): number => Number(shape.getAttribute(name) ?? 0);
  if (shape instanceof SVGTextElement) {
    context.font = fontOf(style);
    context.fillStyle = style.fill;
    context.textBaseline = "alphabetic";
    context.fillText(shape.textContent ?? "", number("x"), number("y"));
    return;
  }
  const path = new Path2D(shape instanceof SVGPathElement ? (shape.getAttribute("d") ?? "") : undefined);
  if (shape instanceof SVGRectElement) {
    path.rect(number("x"), number("y"), number("width"), number("height"));
  }
  if (style.fill !== "none") {
    context.globalAlpha *= Number(style.fillOpacity);
    context.fillStyle = style.fill;
    context.fill(path);
  }
  if (style.stroke !== "none") {
    context.globalAlpha = Number(style.opacity) * Number(style.strokeOpacity);
    context.strokeStyle = style.stroke;
    context.lineWidth = Number.parseFloat(style.strokeWidth);
    context.lineCap = style.strokeLinecap as CanvasLineCap;
    context.stroke(path);
  }
}

function drawText(context: CanvasRenderingContext2D, text: Text, style: CSSStyleDeclaration): void {
  const range = document.createRange();
  range.selectNodeContents(text);
  const [line] = range.getClientRects();
  const words = (text.textContent ?? "").replace(/\s+/g, " ").trim();
  if (line && words !== "") {
    context.font = fontOf(style);
    context.fillStyle = style.color;
    context.textBaseline = "middle";
    context.fillText(words, line.left, line.top + line.height / 2);
  }
}

function draw(context: CanvasRenderingContext2D, element: Element): void {
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  // A level line has no height, and yet is seen.
  const isEmpty = !(element instanceof SVGElement) && (box.width === 0 || box.height === 0);
  if (style.display === "none" || style.visibility !== "visible" || isEmpty) {
    return;
  }
  context.save();
  context.globalAlpha *= Number(style.opacity);
  if (element instanceof SVGSVGElement) {
    context.translate(box.left, box.top);
  } else if (element instanceof SVGElement) {
    drawShape(context, element, style);
  } else {
    if (isSeen(style.backgroundColor)) {
      context.fillStyle = style.backgroundColor;
      context.fillRect(box.left, box.top, box.width, box.height);
    }
    for (const [width, colour, x, y, wide, high] of [
      [style.borderBottomWidth, style.borderBottomColor, box.left, box.bottom - 1, box.width, 1],
      [style.borderRightWidth, style.borderRightColor, box.right - 1, box.top, 1, box.height],
      [style.borderLeftWidth, style.borderLeftColor, box.left, box.top, 1, box.height],
    ] as const) {
      if (width !== "0px" && isSeen(colour)) {
        context.fillStyle = colour;
        context.fillRect(x, y, wide, high);
      }
    }
    if (style.overflow !== "visible") {
      context.beginPath();
      context.rect(box.left, box.top, box.width, box.height);
      context.clip();
    }
  }
  for (const child of element.childNodes) {
    if (child instanceof Text && !(element instanceof SVGElement)) {
      drawText(context, child, style);
    } else if (child instanceof HTMLCanvasElement) {
      const { left, top, width, height } = child.getBoundingClientRect();
      context.drawImage(child, left, top, width, height);
    } else if (child instanceof Element && !child.matches("title, button, select, input")) {
      draw(context, child);
    }
  }
  context.restore();
}

/** A trace of a plot, with the colour of its line. */
export interface Trace {
  label: string;
  colour: string;
}

/** Draws the names of traces below a picture, in lines of this width. Returns their height; without a colour it only measures. */
function drawNames(traces: readonly Trace[], width: number, top: number, context: CanvasRenderingContext2D, ink: string | undefined): number {
  context.font = `${NAMES.size}px sans-serif`;
  context.textBaseline = "middle";
  let [x, y] = [NAMES.gap, top + NAMES.line / 2];
  for (const { label, colour } of traces) {
    const wide = context.measureText(label).width + NAMES.mark + 2 * NAMES.gap;
    if (x + wide > width && x > NAMES.gap) {
      [x, y] = [NAMES.gap, y + NAMES.line];
    }
    if (ink !== undefined) {
      context.fillStyle = colour;
      context.fillRect(x, y - 2, NAMES.mark, 4);
      context.fillStyle = ink;
      context.fillText(label, x + NAMES.mark + NAMES.gap / 2, y);
    }
    x += wide;
  }
  return traces.length > 0 ? y + NAMES.line / 2 - top : 0;
}

/** Returns a picture of an element as a file, with the names of traces below it; none if the browser cannot draw it. */
export async function painted(element: HTMLElement, name: string, traces: readonly Trace[] = []): Promise<File | undefined> {
  const { left, top, width, height } = element.getBoundingClientRect();
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (!context || width === 0 || height === 0) {
    return undefined;
  }
  const high = height + drawNames(traces, width, 0, context, undefined);
  const scale = Math.min(SCALE, MOST / Math.max(width, high));
  [canvas.width, canvas.height] = [Math.ceil(width * scale), Math.ceil(high * scale)];
  context.scale(scale, scale);
  const page = getComputedStyle(document.body);
  context.fillStyle = page.backgroundColor;
  context.fillRect(0, 0, width, high);
  drawNames(traces, width, height, context, page.color);
  context.translate(-left, -top);
  draw(context, element);
  const blob = await new Promise<Blob | null>((made) => canvas.toBlob(made, "image/png"));
  return blob ? new File([blob], name, { type: "image/png" }) : undefined;
}
