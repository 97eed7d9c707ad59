// SPDX-License-Identifier: Apache-2.0
//
// Canvases that are sharp on any screen.

import { h } from "../ui/dom";
import { paper } from "../ui/paper";

const kPaperRatio = 3;

// A context in CSS pixels for a canvas that has its place in the page.
export function prepare(canvas: HTMLCanvasElement, width: number,
                        height: number): CanvasRenderingContext2D {
  const ratio = paper.on ? kPaperRatio
    : Math.min(devicePixelRatio || 1, 3);
  const w = Math.max(1, Math.round(width * ratio));
  const hgt = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== hgt) canvas.height = hgt;
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d", { alpha: false })!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

const kEnd = 8;   // letters that are left behind the ellipsis, at least

// A text, or its beginning and its end as far as they fit: names differ at
// both.
export function fitName(context: CanvasRenderingContext2D, text: string,
                        width: number): string {
  if (width < 8) return "";
  const whole = context.measureText(text).width;
  if (whole <= width) return text;
  let letters = Math.floor(text.length * width / whole);
  for (; letters > 0; --letters) {
    const end = letters < 3 * kEnd ? 0 : Math.max(kEnd, letters >> 1);
    const shown = text.slice(0, letters - end - 1) + "\u2026" +
      text.slice(text.length - end);
    if (context.measureText(shown).width <= width) return shown;
  }
  return "";
}

// As much of a text as fits.
export function fitText(context: CanvasRenderingContext2D, text: string,
                        width: number): string {
  if (width < 8) return "";
  const most = Math.floor(width / 4) + 1;
  let shown = text.length > most ? text.slice(0, most) : text;
  while (shown !== "" && context.measureText(shown).width > width) {
    shown = shown.slice(0, Math.min(shown.length - 1,
      Math.floor(shown.length * width /
                 context.measureText(shown).width)));
  }
  return shown;
}

// A picture at twice the size with title and text below, as PNG.
export function toPng(source: HTMLCanvasElement, title: string, note: string,
                      done: (picture: Blob) => void): void {
  const scale = 2 * source.clientWidth / source.width;
  const width = source.width * scale;
  const height = source.height * scale;
  const canvas = h("canvas", { width: Math.round(width),
                               height: Math.round(height + 110) });
  const context = canvas.getContext("2d", { alpha: false })!;
  const style = getComputedStyle(document.documentElement);
  context.fillStyle = style.getPropertyValue("--page");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(source, 0, 60, width, height);
  context.fillStyle = style.getPropertyValue("--text");
  context.font = "600 28px system-ui, sans-serif";
  context.fillText(title.slice(0, 200), 16, 40, width - 32);
  context.font = "24px system-ui, sans-serif";
  context.fillText(note.slice(0, 400), 16, height + 94, width - 32);
  canvas.toBlob((blob) => { if (blob) done(blob); });
}

// A bent arrow that ends below its target.
export function drawArrow(context: CanvasRenderingContext2D, color: string,
                          fromX: number, fromY: number, toX: number,
                          toY: number): void {
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.bezierCurveTo(fromX, (fromY + toY) / 2, toX, (fromY + toY) / 2,
                        toX, toY + 2);
  context.stroke();
  context.beginPath();
  context.moveTo(toX - 4, toY + 8);
  context.lineTo(toX, toY + 1);
  context.lineTo(toX + 4, toY + 8);
  context.stroke();
}
