// SPDX-License-Identifier: Apache-2.0
//
// Mouse and touch on a timeline. The wheel zooms once the drawing has focus
// (before that the page scrolls); shift-wheel and drag pan; a drag on the
// ruler or with shift marks a range; two fingers pinch, one scrolls the page.

export interface Surface {
  canvas: HTMLCanvasElement;
  plot: { left: number; width: number };
  zoomBy(factor: number, share: number): void;
  panBy(share: number): void;
  fit(): void;
  click(x: number, y: number): void;
  range(from: number, to: number): void;
  mark(from: number, to: number): void;
  hover(x: number, y: number): void;
  leave(): void;
}

const kRuler = 20;     // px
const kSlack = 4;      // px that a click may move

export function attachPointer(surface: Surface): void {
  const { canvas } = surface;
  const down = new Map<number, { x: number; y: number }>();
  let start: { x: number; y: number; range: boolean } | null = null;
  let moved = false;

  const share = (x: number) => {
    const { left, width } = surface.plot;
    return Math.min(1, Math.max(0, (x - left) / width));
  };
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas) return;
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
              range: event.shiftKey || event.offsetY < kRuler };
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
    } else if (moved && start.range) {
      surface.mark(start.x, now.x);
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
    if (moved && from.range) surface.range(from.x, event.offsetX);
    else if (!moved) surface.click(event.offsetX, event.offsetY);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => surface.leave());
  canvas.addEventListener("dblclick", () => surface.fit());
}
