// SPDX-License-Identifier: Apache-2.0
//
// Mouse and touch on a timeline. The wheel zooms once the drawing has focus, and
// with Ctrl (before that the page scrolls); shift-wheel and drag pan; a drag on
// the ruler is a filter of time, with shift it marks an area, whose edges can be
// dragged; two fingers pinch, one scrolls the page.

export interface Point { x: number; y: number }
export type Edge = "from" | "to";

export interface Surface {
  canvas: HTMLCanvasElement;
  plot: { left: number; width: number };
  docked3: boolean;      // nothing scrolls but the tracks
  zoomBy(factor: number, share: number): void;
  panBy(share: number): void;
  click(x: number, y: number): void;
  range(from: number, to: number): void;
  mark(from: Point, to: Point, whole: boolean): void;
  area(from: Point, to: Point): void;
  // The edge of the marked area at a place, and its new place.
  edge(x: number, y: number): Edge | null;
  moveEdge(edge: Edge, x: number, done: boolean): void;
  hover(x: number, y: number): void;
  leave(): void;
}

const kRuler = 20;     // px
const kSlack = 4;      // px that a click may move

export function attachPointer(surface: Surface): void {
  const { canvas } = surface;
  const down = new Map<number, Point>();
  let start: Point & { as: "range" | "area" | "pan" | Edge } | null = null;
  let moved = false;

  const share = (x: number) => {
    const { left, width } = surface.plot;
    return Math.min(1, Math.max(0, (x - left) / width));
  };
  canvas.addEventListener("wheel", (event) => {
    // Beside the drawing, and where the page scrolls, the wheel does as usual.
    if (!event.ctrlKey && (surface.docked3 ? event.offsetX < surface.plot.left
      : document.activeElement !== canvas)) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      surface.panBy((event.deltaX || event.deltaY) / surface.plot.width);
    } else {
      surface.zoomBy(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) *
                              0.0025), share(event.offsetX));
    }
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.focus({ preventScroll: true });
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    start = { x: event.offsetX, y: event.offsetY,
              as: surface.edge(event.offsetX, event.offsetY) ??
                (event.shiftKey ? "area" : event.offsetY < kRuler ? "range"
                : "pan") };
    moved = false;
    surface.leave();
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = down.get(event.pointerId);
    const now = { x: event.offsetX, y: event.offsetY };
    if (!last || !start) {
      if (event.pointerType === "mouse") surface.hover(now.x, now.y);
      return;
    }
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (Math.abs(now.x - start.x) > kSlack) moved = true;
    if (other) {
      const before = Math.max(8, Math.abs(last.x - other.x));
      const after = Math.max(8, Math.abs(now.x - other.x));
      surface.zoomBy(before / after, share((now.x + other.x) / 2));
      moved = true;
    } else if (moved && (start.as === "range" || start.as === "area")) {
      surface.mark(start, now, start.as === "range");
    } else if (moved && (start.as === "from" || start.as === "to")) {
      surface.moveEdge(start.as, now.x, false);
    } else if (moved) {
      surface.panBy((last.x - now.x) / surface.plot.width);
    }
    down.set(event.pointerId, now);
  });
  const up = (event: PointerEvent) => {
    if (!down.delete(event.pointerId) || down.size > 0 || !start) return;
    const from = start;
    start = null;
    if (event.type === "pointercancel") return;
    const now = { x: event.offsetX, y: event.offsetY };
    if (moved && from.as === "range") surface.range(from.x, now.x);
    else if (moved && from.as === "area") surface.area(from, now);
    else if (moved && (from.as === "from" || from.as === "to"))
      surface.moveEdge(from.as, now.x, true);
    else if (!moved) surface.click(event.offsetX, event.offsetY);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => surface.leave());
  canvas.addEventListener("dblclick", (event) =>
    surface.zoomBy(0.5, share(event.offsetX)));
}
