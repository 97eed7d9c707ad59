// SPDX-License-Identifier: Apache-2.0
//
// The timeline: a strip of the whole trace, the tracks of the window, and the
// longest matching events of the window as a table, which is also the form of
// the drawing for those who cannot see it.

import { kAnswerBlocks } from "../data/answer";
import { Axis, foldedAxis } from "../data/fold";
import { laneName } from "../data/filter";
import { gapsOf, gpusOf, partsOf } from "../data/gpus";
import { groupIndex } from "../data/groups";
import { Refused } from "../data/live";
import { levelFor } from "../data/pyramid";
import { firstStartingAt } from "../data/tracks";
import { drawArea } from "../draw/area";
import { prepare, toPng } from "../draw/canvas";
import { drawIdle } from "../draw/gpurow";
import { extent, kLabelHeight, kRulerHeight, makeScene, orderOption, preparePyramids,
  type GpuTrack, type Scene, type Track } from "../draw/scene";
import { coverage, Painter, veil, type Window } from "../draw/timeline";
import { litSpans } from "../ui/answer";
import type { App, View } from "../ui/app";
import { areaPatch, markedArea } from "../ui/area";
import { drawLegend, swatch } from "../ui/chips";
import { firstPair, type FirstPair } from "../ui/compare";
import { groupColor, ink, kGroups } from "../ui/colors";
import { download, h } from "../ui/dom";
import { eventAt, longest, nameIds } from "../ui/events";
import { clean, count, kernelName, time } from "../ui/format";
import { addFlag, drawFlags } from "../ui/flags";
import { selectedGap, showGap } from "../ui/gaps";
import { attachPointer, type Edge, type Point, type Surface } from
  "../ui/pointer";
import { nameCells } from "../ui/names";
import { styled } from "../ui/prose";
import { drawTable } from "../ui/table";

const kLeast = 200;      // ns: the narrowest window
const kMostRows = 100_000;  // of the table: all that are in view
const kMostAsked = 96;      // streams of one question to the server
const kAskedRows = 1000;    // of a page that is served
const kFewRows = 1000;      // the longest of those, where there are more
const kMostParts = 50_000;   // drawn one by one in the strip
const kStripHeight = 34;
const kEdge = 4;         // px beside the edge of the marked area

// The menu of the tracks stays open while the view is drawn again.
let menuOpen = false;

class Timeline implements Surface {
  readonly canvas = h("canvas", { tabindex: "0", "data-k": "timeline.canvas",
    role: "img", "aria-label": "Timeline; W and S zoom, A and D pan; the " +
      "longest events in view are in the table below" });
  private readonly strip = h("canvas", { "aria-hidden": "true" });
  private readonly docked = h("div");
  private readonly below = h("div");
  private readonly words = h("span", { class: "muted" });
  private readonly tip = h("div", { class: "tip", hidden: true });
  // The ruler and the rows of GPUs, which stay when the tracks scroll.
  private readonly top = h("canvas", { class: "pinned", "aria-hidden": "true" });
  private readonly box = h("div", { class: "canvasbox tracks" }, this.canvas,
                           this.top, this.tip);
  private scene: Scene | null = null;
  private painter: Painter | null = null;
  private window: Window;
  private readonly whole: Window;
  private readonly pair: FirstPair | null;
  private readonly folded: Axis;   // with long idle time folded
  private readonly axis: Axis;     // the one that is drawn
  private width = 0;
  private frame = 0;
  private wait = 0;
  private cells: ReturnType<typeof nameCells> | null = null;  // of all kernels

  constructor(private readonly app: App, root: HTMLElement) {
    const [from, to] = extent(app.model);
    this.whole = { from, to };
    this.folded = foldedAxis(app.model, this.whole);
    this.axis = app.option("timeline.fold") === "on" ? this.folded : new Axis();
    this.pair = firstPair(app);
    const zoom = app.state.zoom ?? aroundSelected(app) ??
      aroundPair(app, this.pair) ??
      deviceWork(app, this.axis.folds.length > 0) ?? [from, to];
    this.window = this.clamp({ from: zoom[0], to: zoom[1] });
    const aligned = app.model.manifest.notes
      .filter((note) => note.id === "page_alignment" && !this.pair)
      .map((note) => h("p", { class: "muted" }, clean(styled(note.text), 600)));
    if (this.pair) {
      aligned.push(h("p", { class: "muted", "data-pair": "aligned" },
        "The first event of the row in B lies over the first one in A" +
        (this.pair.shift === 0 ? "" : `: B stands ${time(Math.abs(
          this.pair.shift))} ${this.pair.shift > 0 ? "earlier" : "later"} ` +
          "than usual") + ". ", app.link("As usual", { zoom: null,
          ...app.withOption("timeline.pair", "") })));
    }
    const head = [drawLegend(app), this.tools(), ...aligned, h("div",
      { class: "canvasbox strip" }, this.strip), drawFlags(app)]
      .filter((part) => part !== null);
    root.append(...app.model.manifest.answer
      ? [h("div", { class: "tl-head" }, ...head), this.box,
         h("div", { class: "tl-rows" }, this.docked, this.below)]
      : [...head, this.box, this.docked, this.below]);
    app.relight = () => {
      if (!this.canvas.isConnected) return;
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.draw());
    };
    this.box.addEventListener("scroll", () => this.pin0());
    attachPointer(this);
    this.strip.addEventListener("pointerdown", (event) => this.onStrip(event));
    this.strip.addEventListener("pointermove", (event) => {
      if (event.buttons === 1) this.onStrip(event);
    });
  }

  private tools(): HTMLElement {
    const { app } = this;
    const bar = h("div", { class: "tools" },
      app.button("Whole trace", () => this.fit(), { "data-k": "tl.fit" }),
      app.button("Zoom in", () => this.zoomBy(0.5), { "data-k": "tl.in" }),
      app.button("Zoom out", () => this.zoomBy(2), { "data-k": "tl.out" }),
      app.button("Filter to what is shown", () => app.go({ chips: app.only("t",
        `${Math.round(this.window.from)}..${Math.round(this.window.to)}`) }),
        { "data-k": "tl.filter" }),
      app.button("PNG", () => toPng(this.canvas,
        `${app.model.title}: ${time(this.window.from)} to ` +
        time(this.window.to), this.caption(), (picture) =>
          download("timeline.png", picture)), { "data-k": "tl.png" }));
    if (this.folded.folds.length > 0) {
      const on = this.axis === this.folded;
      bar.append(app.button("Fold idle", () => app.go({ zoom: null,
        ...app.withOption("timeline.fold", on ? "" : "on") }),
        { "data-k": "tl.fold", "aria-pressed": String(on), title:
          "Long stretches without work on any GPU take little room" }));
    }
    bar.append(h("span", { id: "tracks" }), this.words);
    return bar;
  }

  private caption(): string {
    const { app } = this;
    const filter = app.state.chips.map((chip) => (chip.not ? "not " : "") +
      chip.values.slice(0, 3).map((v) => clean(v, 40)).join(" or "));
    return (filter.length > 0 ? `Filter: ${filter.join("; ")}. ` : "") +
      "Colours: " + kGroups.join(", ");
  }

  mount(): void {
    this.width = this.box.clientWidth;
    this.scene = makeScene(this.app, this.width);
    const context = prepare(this.canvas, this.width, this.scene.height);
    this.painter = new Painter(this.app, this.scene, context, this.width,
                               this.axis, this.pair?.shift);
    this.painter.marked = markedArea(this.app);
    this.trackMenu();
    this.drawStrip();
    const area = drawArea(this.app, this.scene);
    this.docked.replaceChildren(...area ? [area] : []);
    this.draw();
    this.fetch();
    this.drawTable();
  }

  // Which tracks are drawn, and in which order; both are in the address.
  private trackMenu(): void {
    const { app } = this;
    const scene = this.scene!;
    const place = this.box.parentElement?.querySelector("#tracks");
    if (scene.unknown > 0) {
      app.say(`${scene.unknown} ${scene.unknown === 1 ? "track" : "tracks"} ` +
              "of the address cannot be used here and were left out");
    }
    const hidden = new Set(scene.hidden.map((t) => t.key));
    const keys = scene.all.map((t) => t.key);
    const own = ["timeline.tracks", "timeline.order"];
    const changed = own.some((option) => app.option(option) !== "");
    const menu = h("details", { class: "menu", open: menuOpen,
      toggle: () => { menuOpen = menu.open; } },
      h("summary", { "data-k": "tl.tracks" }, hidden.size > 0
        ? `Tracks (${hidden.size} hidden)` : "Tracks"),
      h("div", {}, ...scene.all.map(({ key, label }, at) =>
        h("div", { class: "track", "data-track": key },
          this.trackCheck(key, label, !hidden.has(key)),
          this.trackFold(key),
          this.trackMove(keys, at, -1, label),
          this.trackMove(keys, at, 1, label))),
        changed ? app.button("As usual", () => app.go({ options: {
          ...app.state.options, "timeline.tracks": "", "timeline.order": "" } }),
          { "data-k": "tl.usual" }) : null));
    place?.replaceChildren(menu);
  }

  private trackCheck(key: string, label: string, shown: boolean): HTMLElement {
    const { app } = this;
    const check = h("input", { type: "checkbox", "data-k": "tl.show." + key,
      change: () => {
        const now = app.option("timeline.tracks").split(",")
          .filter((k) => this.scene!.usual.includes(k));
        app.go(app.withOption("timeline.tracks", (now.includes(key)
          ? now.filter((k) => k !== key) : [...now, key]).join(",")));
      } });
    check.checked = shown;
    return h("label", {}, check, " ", label);
  }

  // The same as a click on the name of the track.
  private trackFold(key: string): HTMLElement | null {
    const track = this.scene!.all.find((one) => one.key === key);
    if (!track?.toggle) return null;
    const { open, patch, words } = track.toggle;
    return this.app.button(open ? "\u25be" : "\u25b8", () => this.app.go(patch),
      { "aria-label": `${track.label}: ${words}`, title: words,
        "aria-expanded": String(open), "data-k": `tl.fold.${key}` });
  }

  private trackMove(keys: string[], at: number, step: 1 | -1,
                    label: string): HTMLElement {
    const { app } = this;
    const word = step < 0 ? "up" : "down";
    return app.button(step < 0 ? "\u2191" : "\u2193", () => {
      const wanted = [...keys];
      wanted.splice(at + step, 0, ...wanted.splice(at, 1));
      app.go(app.withOption("timeline.order",
                            orderOption(wanted, this.scene!.usual)));
    }, { "aria-label": `Move ${label} ${word}`,
         "data-k": `tl.${word}.${keys[at]}`,
         disabled: at + step < 0 || at + step >= keys.length });
  }

  // --- window ---

  private clamp({ from, to }: Window): Window {
    const { from: first, to: last } = this.whole;
    const span = Math.min(Math.max(to - from, kLeast), last - first);
    const start = Math.min(Math.max(from, first), last - span);
    return { from: start, to: start + span };
  }
  // A window of the axis, in time.
  private ofAxis(from: number, to: number): Window {
    const { axis } = this;
    const [first, last] = [axis.toAxis(this.whole.from),
                           axis.toAxis(this.whole.to)];
    const span = Math.min(to - from, last - first);
    const start = Math.min(Math.max(from, first), last - span);
    return { from: axis.toTime(start), to: axis.toTime(start + span) };
  }
  private get onAxis(): Window {
    return { from: this.axis.toAxis(this.window.from),
             to: this.axis.toAxis(this.window.to) };
  }
  private set(window: Window): void {
    this.window = this.clamp(window);
    delete this.canvas.dataset.window;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
    clearTimeout(this.wait);
    this.wait = setTimeout(() => this.settle(), 180) as unknown as number;
  }
  // When the window rests, the address and the table follow.
  private settle(): void {
    if (!this.canvas.isConnected) return;
    const { from, to } = this.window;
    this.app.keep({ zoom: [Math.round(from), Math.round(to)] });
    this.fetch();
    this.drawTable();
  }

  // What the page lacks of the window, where it is served; data-live says for
  // tests whether it has come.
  private fetch(): void {
    const { app } = this;
    const tracks = this.scene?.tracks ?? [];
    // Those with a row of their own first, then those that the row of a GPU is
    // the union of.
    const lanes = [...new Set([...tracks.flatMap((track) =>
      track.kind === "lane" ? [track.lane] : []), ...tracks.flatMap((track) =>
      track.kind === "gpu" ? track.row.gpu.lanes : [])])]
      .slice(0, kMostAsked);
    if (!app.served || lanes.length === 0) return;
    const { from, to } = this.window;
    this.canvas.dataset.live = "asked";
    const chips = app.state.chips;
    const { served } = app;
    const { drops } = served;
    this.fetched(served.fetchTiles(chips, lanes, from, to, this.plot.width)
      .then((more) => {
        if (more && this.canvas.isConnected) this.draw();
        this.canvas.dataset.live = "here";
        // The rows of the table are those of other events now.
        if (served.drops !== drops && this.canvas.isConnected) this.drawTable();
      }));
  }
  private fetched(work: Promise<void>): void {
    work.catch((error: unknown) => {
      // A newer question ended it.
      if (error instanceof DOMException && error.name === "AbortError") return;
      if (!(error instanceof Refused)) throw error;
      this.canvas.dataset.live = "refused";
      this.app.say(`${error.message}. ${error.hint}`);
    });
  }
  private draw(): void {
    const begin = performance.now();
    this.painter?.draw(this.window);
    this.drawWindowMark();
    this.pin0();
    const { from, to } = this.window;
    const away = this.axis.pieces(this.window).reduce((sum, piece) =>
      sum + (piece.folded ? piece.to - piece.from : 0), 0);
    this.words.textContent =
      `${time(to - from)} shown, ${this.painter?.detail ?? ""}` +
      (away > 0 ? `; ${time(away)} of it idle and folded` : "");
    frames.push(performance.now() - begin);
    this.canvas.dataset.window = `${Math.round(from)}..${Math.round(to)}`;
  }

  // The height of what stays in view: the ruler, and GPUs at the top.
  private get pinned(): number {
    const tracks = this.scene?.tracks ?? [];
    const rest = tracks.findIndex((track) => track.kind !== "gpu");
    const last = tracks[(rest < 0 ? tracks.length : rest) - 1];
    const height = last ? last.y + last.height + 2 : kRulerHeight;
    return height <= this.box.clientHeight / 2 ? height : kRulerHeight;
  }
  private pin0(): void {
    const down = this.box.scrollTop;
    this.top.hidden = down === 0;
    if (down === 0) return;
    const context = prepare(this.top, this.width, this.pinned);
    const scale = this.canvas.width / this.width;
    context.drawImage(this.canvas, 0, 0, this.canvas.width,
      this.pinned * scale, 0, 0, this.width, this.pinned);
    this.top.style.top = `${down}px`;
  }
  // A place on the screen as one of the drawing, where a part of it stays.
  private under(y: number): number {
    const down = this.box.scrollTop;
    return down > 0 && y - down < this.pinned ? y - down : y;
  }
  get docked3(): boolean {
    return document.documentElement.classList.contains("three");
  }

  get drawn(): Track[] { return this.scene?.tracks ?? []; }
  topOf(uid: number): number { return this.painter?.place(uid)?.y ?? 0; }
  leftOf(uid: number): number {
    return this.placeOf("", this.painter?.place(uid)?.t ?? 0).x;
  }
  private xOf(t: number): number {
    const { left, width } = this.plot;
    const { from, to } = this.onAxis;
    return left + (this.axis.toAxis(t) - from) / (to - from) * width;
  }
  placeOf(key: string, t: number): { x: number; y: number } {
    const y = this.scene?.tracks.find((track) => track.key === key)?.y ?? 0;
    return { x: this.xOf(t), y: y + 4 };
  }
  fit(): void { this.set(this.whole); }
  zoomBy(factor: number, share = 0.5): void {
    const { from, to } = this.onAxis;
    const at = from + (to - from) * share;
    this.set(this.ofAxis(at - (at - from) * factor, at + (to - at) * factor));
  }
  panBy(share: number): void {
    const { from, to } = this.onAxis;
    const step = (to - from) * share;
    this.set(this.ofAxis(from + step, to + step));
  }
  get plot(): { left: number; width: number } {
    const left = this.scene?.gutter ?? 0;
    return { left, width: Math.max(1, this.width - left) };
  }
  private timeAt(x: number): number {
    const { left, width } = this.plot;
    const { from, to } = this.onAxis;
    return this.axis.toTime(from + (x - left) / width * (to - from));
  }

  // --- pointer ---

  click(x: number, y: number): void {
    y = this.under(y);
    const named = this.named(x, y);
    if (named?.toggle) return this.keepZoom(named.toggle.patch);
    const hit = this.painter?.hit(this.window, x, y);
    if (!hit) return;
    if (hit.uid !== null) {
      this.keepZoom({ selected: String(hit.uid) });
    } else if (hit.gap) {
      this.keepZoom({ selected: showGap(this.app, hit.gap).selected });
    } else if (hit.track.kind === "boxes") {
      this.keepZoom(hit.track.rows[0]!.click(hit.id));
    }
  }
  // The track whose name is at a point: beside the drawing, or above a row.
  private named(x: number, y: number): Track | undefined {
    const above = this.plot.left === 0 ? kLabelHeight : 0;
    return x >= (above > 0 ? this.width : this.plot.left) ? undefined
      : this.scene?.tracks.find((track) => above > 0
        ? y >= track.y - above && y < track.y
        : y >= track.y && y < track.y + Math.max(12, track.height));
  }
  private keepZoom(patch: Parameters<App["go"]>[0]): void {
    const { from, to } = this.window;
    clearTimeout(this.wait);
    this.app.go({ zoom: [Math.round(from), Math.round(to)], ...patch });
  }
  range(from: number, to: number): void {
    const a = Math.round(this.timeAt(Math.min(from, to)));
    const b = Math.round(this.timeAt(Math.max(from, to)));
    if (b > a) this.keepZoom({ chips: this.app.only("t", `${a}..${b}`) });
  }
  // The part that a drag has marked so far.
  mark(from: Point, to: Point, whole: boolean): void {
    this.painter?.draw(this.window);
    const context = this.canvas.getContext("2d")!;
    context.globalAlpha = 0.25;
    context.fillStyle = ink("link");
    const [top, height] = whole ? [0, this.scene!.height]
      : [Math.min(from.y, to.y), Math.abs(to.y - from.y)];
    context.fillRect(Math.min(from.x, to.x), top, Math.abs(to.x - from.x),
                     height);
    context.globalAlpha = 1;
  }
  // The tracks that a drag has crossed.
  area(a: Point, b: Point): void {
    const from = Math.round(this.timeAt(Math.min(a.x, b.x)));
    const to = Math.round(this.timeAt(Math.max(a.x, b.x)));
    const [top, bottom] = [Math.min(a.y, b.y), Math.max(a.y, b.y)];
    const keys = this.scene!.tracks.filter((track) =>
      track.y <= bottom && track.y + track.height >= top)
      .map((track) => track.key);
    if (to > from) this.keepZoom(areaPatch(this.app, { from, to, keys }));
  }
  edge(x: number): Edge | null {
    const marked = markedArea(this.app);
    for (const edge of marked ? ["from", "to"] as const : [])
      if (Math.abs(this.xOf(marked![edge]) - x) <= kEdge) return edge;
    return null;
  }
  moveEdge(edge: Edge, x: number, done: boolean): void {
    const marked = markedArea(this.app);
    if (!marked || !this.painter) return;
    marked[edge] = Math.round(this.timeAt(x));
    if (marked.from > marked.to)
      [marked.from, marked.to] = [marked.to, marked.from];
    if (marked.from === marked.to) return;
    this.painter.marked = marked;
    this.painter.draw(this.window);
    if (done) this.keepZoom(areaPatch(this.app, marked));
  }
  hover(x: number, at: number): void {
    const y = this.under(at);
    this.pointer = x;
    const hit = this.painter?.hit(this.window, x, y);
    // Names of tracks are cut beside the drawing.
    const named = this.named(x, y);
    this.canvas.style.cursor = this.edge(x) ? "ew-resize"
      : hit || named?.toggle ? "pointer" : "";
    const words = hit?.words ?? (named ? named.label + (named.toggle
      ? ` \u2013 click: ${named.toggle.words}` : "") : undefined);
    this.tip.hidden = words === undefined;
    if (words === undefined) return;
    this.tip.textContent = words;
    const width = this.box.clientWidth;
    this.tip.style.left = Math.max(4, Math.min(x + 12, width - 450)) + "px";
    // Above the pointer where there is no room below.
    const room = this.box.scrollTop + this.box.clientHeight;
    this.tip.style.top = (at + 60 > room ? at - 40 : at + 16) + "px";
  }
  leave(): void {
    this.tip.hidden = true;
  }
  private pointer = -1;   // px: where the mouse is, or was
  private get pointed(): number {
    const { left, width } = this.plot;
    return this.pointer < left ? 0.5
      : Math.min(1, (this.pointer - left) / width);
  }

  // --- the strip of the whole trace ---

  private picture: ImageData | null = null;

  private drawStrip(): void {
    const { width } = this;
    const context = prepare(this.strip, width, kStripHeight);
    context.fillStyle = ink("panel");
    context.fillRect(0, 0, width, kStripHeight);
    const { axis } = this;
    const [only, more] = gpusOf(this.app.model);
    if (this.app.model.manifest.answer && only && !more &&
        axis.folds.length === 0) {
      drawIdle(context, this.app, only, { y: 2, height: kStripHeight - 4,
        left: 0, right: width }, this.whole);
    }
    const first_at = axis.toAxis(this.whole.from);
    const step = (axis.toAxis(this.whole.to) - first_at) / width;
    // Streams that work at once count once; of several GPUs the mean.
    const gpus = this.scene!.all.filter((t) => t.kind === "gpu" && !t.rest) as
      GpuTrack[];
    const weight = new Float64Array(kGroups.length);
    const exact = gpus.map((gpu) => this.sharesOf(gpu));
    const shares: number[] = [];
    for (let x = 0; x < width; ++x) {
      weight.fill(0);
      let most = 0;
      const from = axis.toTime(first_at + x * step);
      const perPixel = axis.toTime(first_at + (x + 1) * step) - from;
      for (const [i, known] of exact.entries()) {
        if (known) {
          let hit = 0;
          for (let group = 0; group < weight.length; ++group) {
            const ns = known[x * weight.length + group]!;
            weight[group]! += ns;
            hit += ns;
          }
          most += hit / perPixel / gpus.length;
          continue;
        }
        const { row: { levels } } = gpus[i]!;
        const level = levelFor(levels, perPixel);
        const at = from - level.from;
        const first = Math.floor(at / level.width);
        const last = Math.max(first + 1,
                              Math.floor((at + perPixel) / level.width));
        let hit = 0;
        for (let b = Math.max(0, first); b < last && b < level.match.length; ++b) {
          hit += level.match[b]!;
          weight[level.group[b]!]! += level.match[b]!;
        }
        most += hit / ((last - first) * level.width) / gpus.length;
      }
      shares.push(most);
      if (most === 0) continue;
      context.fillStyle = groupColor(kGroups[weight.indexOf(
        Math.max(...weight))]!);
      const tall = Math.max(1, Math.min(1, most) * (kStripHeight - 4));
      context.fillRect(x, kStripHeight - 2 - tall, 1, tall);
    }
    stripShares = shares;
    this.picture = context.getImageData(0, 0, this.strip.width,
                                        this.strip.height);
  }

  // Time by column of the strip and family; null where there are too many
  // parts to look at each.
  private sharesOf({ row: { parts } }: GpuTrack): Float64Array | null {
    if (!parts || parts.count > kMostParts) return null;
    const { axis, width } = this;
    const sums = new Float64Array(width * kGroups.length);
    const groups = groupIndex(this.app.model);
    const first = axis.toAxis(this.whole.from);
    const step = (axis.toAxis(this.whole.to) - first) / width;
    for (let i = 0; i < parts.count; ++i) {
      const group = groups[parts.family[i]!]!;
      const end = parts.start[i]! + parts.dur[i]!;
      for (let at = parts.start[i]!; at < end;) {
        const x = Math.min(width - 1, Math.max(0,
          Math.floor((axis.toAxis(at) - first) / step)));
        const next = x === width - 1 ? end
          : Math.max(axis.toTime(first + (x + 1) * step), at + 1);
        sums[x * kGroups.length + group]! += Math.min(end, next) - at;
        at = next;
      }
    }
    return sums;
  }

  private drawWindowMark(): void {
    if (!this.picture) return;
    const context = this.strip.getContext("2d")!;
    context.putImageData(this.picture, 0, 0);
    const { axis } = this;
    const [from, to] = [axis.toAxis(this.whole.from), axis.toAxis(this.whole.to)];
    const x = (t: number) => (axis.toAxis(t) - from) / (to - from) * this.width;
    context.strokeStyle = ink("text");
    context.lineWidth = 2;
    const left = x(this.window.from);
    this.dimStrip(context);
    context.strokeRect(left + 1, 1,
      Math.max(3, x(this.window.to) - left - 2), kStripHeight - 2);
  }

  // What is pointed at stays lit here, too.
  private dimStrip(context: CanvasRenderingContext2D): void {
    const { app, width } = this;
    if (!app.lit || this.axis.folds.length > 0) return;
    const all = new Uint8Array(width);
    for (const gpu of gpusOf(app.model)) {
      const one = coverage(litSpans(app, gpu, app.lit), this.whole, 0, width);
      for (let i = 0; i < width; ++i) all[i]! |= one[i]!;
    }
    context.globalAlpha = 0.8;
    context.fillStyle = ink("panel");
    veil(context, all, 0, 0, kStripHeight);
    context.globalAlpha = 1;
  }

  private onStrip(event: PointerEvent): void {
    const { axis } = this;
    const [first, last] = [axis.toAxis(this.whole.from),
                           axis.toAxis(this.whole.to)];
    const at = first + event.offsetX / this.strip.clientWidth * (last - first);
    const { from, to } = this.onAxis;
    this.set(this.ofAxis(at - (to - from) / 2, at + (to - from) / 2));
  }

  // --- the table ---

  private drawTable(): void {
    const { app } = this;
    const { device } = app.model;
    if (!device) return;
    const { from, to } = this.window;
    const asked = app.served?.where(app.state.chips) ? app.served : null;
    if (asked) {
      this.below.dataset.live = "asked";
      const { drops } = asked;
      this.fetched(asked.longest(app.state.chips, from, to, kAskedRows)
        .then((found) => {
          if (!found || !this.below.isConnected) return;
          this.drawRows(found.rows, found.events, found.time_ns);
          this.below.dataset.live = "here";
          // The tiles went to make room: what is drawn has other rows.
          if (asked.drops !== drops) {
            this.fetch();
            this.draw();
          }
        }));
      // The one of the window before stays until then.
      if (this.below.childElementCount > 0) return;
    }
    const { mask } = app.selection;
    let matching = 0;
    let sum = 0;
    const inView = new Uint8Array(device.count);
    for (const lane of app.model.lanes) {
      const by = lane.trace === 1 ? this.pair?.shift ?? 0 : 0;
      const [from, to] = [this.window.from + by, this.window.to + by];
      const last = firstStartingAt(device.start, to, lane.begin, lane.end);
      for (let i = lane.begin; i < last; ++i) {
        // Those without length are of the window that they start in.
        const start = device.start[i]!;
        if ((start < from && start + device.dur[i]! <= from) ||
            (mask && !mask[i])) continue;
        inView[i] = 1;
        ++matching;
        sum += app.filter.inside(i, from, to);
      }
    }
    this.drawRows(longest(device.dur, device.count, matching > kMostRows
      ? kFewRows : kMostRows, (row) => inView[row] === 1), matching, sum);
  }

  private drawRows(rows: number[], matching: number, sum: number): void {
    const { app } = this;
    const device = app.model.device!;
    const kernels = app.model.table("kernels");
    const shown = this.cells ??= nameCells(Array.from(
      { length: kernels?.rows ?? 0 }, (_, row) =>
        kernelName(kernels!.str(row, "kernel"), 200)));
    const names = nameIds(app);
    const op = (row: number) => kernels && device.kernel[row]! > 0
      ? kernels.str(device.kernel[row]! - 1, "op") : "";
    const group = (row: number) => app.model.families[device.family[row]!]!;
    const chosen = Number(app.state.selected || -1);
    const note = matching > rows.length
      ? `The longest of ${count(matching)} in view, together ${time(sum)} ` +
        "inside the window."
      : `Together ${time(sum)} inside the window.`;
    this.below.replaceChildren(h("h2", {}, "Matching events in view"),
      drawTable(app, {
        id: "events", caption: "Matching events in view", rows,
        sort: "length-", note,
        chosen: (row) => device.uid[row] === chosen,
        empty: "No device event in view passes the filter.",
        columns: [
          { key: "start", title: "start", numeric: true,
            value: (row) => device.start[row]!,
            text: (row) => time(device.start[row]!) },
          { key: "length", title: "length", numeric: true,
            value: (row) => device.dur[row]!,
            text: (row) => time(device.dur[row]!) },
          { key: "family", title: "family", value: (row) => group(row).name,
            cell: (row) => h("span", {}, swatch(group(row).group),
                             group(row).name) },
          { key: "kernel", title: "kernel", wide: true,
            value: (row) => app.model.text(names(row)),
            cell: (row) => app.link(
              shown(kernelName(app.model.text(names(row)), 200)),
              { view: "timeline", selected: String(device.uid[row]!), zoom: [
                Math.round(this.window.from), Math.round(this.window.to)] }) },
          { key: "op", title: "op", value: op,
            cell: (row) => clean(op(row), 80) },
          { key: "stream", title: "stream",
            value: (row) => laneName(app.model, device.lane[row]!) },
        ],
      }));
  }

  // The selection; if the window shows just that, or there is none, all.
  private focusSelection(): void {
    const area = markedArea(this.app);
    const wanted = aroundSelected(this.app) ??
      (area ? [area.from, area.to] as const : null);
    const next = wanted && this.clamp({ from: wanted[0], to: wanted[1] });
    if (next && (Math.abs(next.from - this.window.from) > 1 ||
                 Math.abs(next.to - this.window.to) > 1)) this.set(next);
    else this.fit();
  }

  // The time of what is selected as area, or none.
  private markSelection(): boolean {
    const { app } = this;
    const event = eventAt(app);
    const gap = selectedGap(app);
    const gaps = gap ? gapsOf(app.model, gap.gpu) : null;
    const [from, length] = gaps ? [gaps.start[gap!.at]!, gaps.dur[gap!.at]!]
      : [event?.start ?? 0, event ? Math.max(1, event.dur) : 0];
    const now = markedArea(app);
    const same = now?.from === from && now.to === from + length;
    if (length === 0 && !now) return false;
    this.keepZoom(areaPatch(app, length === 0 || same ? null
      : { from, to: from + length, keys: [] }));
    return true;
  }

  // The next event that passes the filter, by start, in the middle.
  private walk(step: 1 | -1): void {
    const { app } = this;
    const device = app.model.device!;
    const hits = hitsOf(app);
    if (hits.length === 0) return app.say("No event passes the filter");
    const now = device.uid.indexOf(Number(app.state.selected || -1) as never);
    let at = now < 0 ? -1 : hits.indexOf(now);
    if (at < 0) {
      const from = now < 0 ? this.window.from : device.start[now]!;
      const next = hits.findIndex((row) => device.start[row]! >= from);
      at = step > 0 ? Math.max(0, next)
        : (next < 0 ? hits.length : next) - 1;
    } else {
      at += step;
    }
    at = (at + hits.length) % hits.length;
    const row = hits[at]!;
    const half = Math.max((this.window.to - this.window.from) / 2,
                          device.dur[row]! * 0.75);
    const middle = device.start[row]! + device.dur[row]! / 2;
    app.go({ selected: String(device.uid[row]),
             zoom: [Math.round(middle - half), Math.round(middle + half)] },
           true);
    app.say(`${count(at + 1)} of ${count(hits.length)}`);
  }

  // The track of the selected event goes to the top, or back.
  private pin(): boolean {
    const { app } = this;
    const scene = this.scene!;
    const key = this.painter?.trackOf(Number(app.state.selected || -1));
    if (!key) return false;
    const keys = scene.all.map((track) => track.key);
    const wanted = keys[0] === key ? scene.usual
      : [key, ...keys.filter((other) => other !== key)];
    app.go(app.withOption("timeline.order", orderOption(wanted, scene.usual)));
    return true;
  }

  key(event: KeyboardEvent): boolean {
    const { app } = this;
    switch (event.code) {
      case "KeyW": case "NumpadAdd": return this.zoomBy(0.6, this.pointed), true;
      case "KeyS": case "NumpadSubtract":
        return this.zoomBy(1 / 0.6, this.pointed), true;
      case "KeyA": return this.panBy(-0.2), true;
      case "KeyD": return this.panBy(0.2), true;
      case "KeyF": return this.focusSelection(), true;
      case "KeyM": return this.markSelection();
      case "KeyQ": return this.pin();
      case "KeyN": {
        const { from, to } = this.window;
        this.keepZoom(addFlag(app, Math.round(eventAt(app)?.start ??
                                              (from + to) / 2)));
        return true;
      }
      case "Enter": {
        if ((event.target as HTMLElement).closest("a, button, td, summary"))
          return false;
        return this.walk(event.shiftKey ? -1 : 1), true;
      }
      default: return false;
    }
  }
}

// Rows of single events that pass the filter, by start.
let hits: { selection: unknown; rows: Uint32Array } | null = null;
function hitsOf(app: App): Uint32Array {
  if (hits?.selection === app.selection) return hits.rows;
  const device = app.model.device!;
  const { mask } = app.selection;
  const rows: number[] = [];
  for (let row = 0; row < device.count; ++row)
    if (!mask || mask[row]) rows.push(row);
  hits = { selection: app.selection, rows: Uint32Array.from(rows)
    .sort((a, b) => device.start[a]! - device.start[b]! || a - b) };
  return hits.rows;
}

const kBusyEnough = 0.2;  // share of the time that a GPU works

const kLittleWork = 0.01;  // of all work

// Work between two long gaps.
interface Run { from: number; to: number; busy: number }

// Where the timeline opens: from the first to the last work of the devices. On
// a page without an answer, without a little before or behind a long gap; if they
// idle for most of that, the stretch between two long gaps with most work.
function deviceWork(app: App, folded: boolean): [number, number] | null {
  const { model } = app;
  const { device } = model;
  if (!device || model.traces.length > 0 || device.first >= device.last)
    return null;
  let best: [number, number] = [device.first, device.last];
  // Below an answer all that it is about.
  if (model.manifest.answer) {
    const room = (best[1] - best[0]) * 0.01;
    return [best[0] - room, best[1] + room];
  }
  const [gpu] = model.thinned || folded ? [] : [...gpusOf(model)]
    .sort((a, b) => b.rows.length - a.rows.length);
  const parts = gpu ? partsOf(model, gpu, null) : null;
  const long = (best[1] - best[0]) / 20;
  const runs: Run[] = [];
  let busy = 0;
  for (let i = 0; parts && i < parts.count; ++i) {
    const [from, to] = [parts.start[i]!, parts.start[i]! + parts.dur[i]!];
    const last = runs[runs.length - 1];
    busy += to - from;
    if (last && from - last.to < long) {
      last.to = to;
      last.busy += to - from;
    } else {
      runs.push({ from, to, busy: to - from });
    }
  }
  if (runs.length > 0 && busy < kBusyEnough * (best[1] - best[0])) {
    const most = runs.reduce((a, b) => b.busy > a.busy ? b : a);
    best = [most.from, most.to];
  } else if (gpu && gpusOf(model).length === 1) {
    while (runs.length > 1 && runs[0]!.busy < kLittleWork * busy) {
      runs.shift();
      best[0] = runs[0]!.from;
    }
    while (runs.length > 1 && runs[runs.length - 1]!.busy < kLittleWork * busy) {
      runs.pop();
      best[1] = runs[runs.length - 1]!.to;
    }
  }
  const room = (best[1] - best[0]) * 0.02;
  return [best[0] - room, best[1] + room];
}

function aroundPair(app: App, pair: FirstPair | null):
    [number, number] | null {
  if (!pair) return null;
  const { start, dur } = app.model.device!;
  const room = 2 * Math.max(dur[pair.a]!, dur[pair.b]!, 20_000);
  return [start[pair.a]! - room, start[pair.a]! + 2 * room];
}

function aroundSelected(app: App): [number, number] | null {
  const gap = selectedGap(app);
  if (gap) return showGap(app, gap).zoom!;
  const event = eventAt(app);
  if (!event) return null;
  const room = Math.max(event.dur * 2, 20_000);
  return [event.start - room, event.start + event.dur + room];
}

// For tests: ms of the drawings, and where an event is drawn.
export const frames: number[] = [];
export let stripShares: number[] = [];  // busy share of each column
let current: Timeline | null = null;
export function trackTop(uid: number): number {
  return current?.topOf(uid) ?? 0;
}
export function trackLeft(uid: number): number {
  return current?.leftOf(uid) ?? 0;
}
export function drawnTracks(): { key: string; label: string; y: number;
                                 height: number }[] {
  return (current?.drawn ?? []).map(({ key, label, y, height }) =>
    ({ key, label, y, height }));
}
export function counterPlace(key: string, t: number): { x: number; y: number } {
  return current?.placeOf(key, t) ?? { x: 0, y: 0 };
}

export const timelineView: View = {
  id: "timeline",
  title: "Timeline",
  filtered: true,
  missing: (model) => model.hasEvents ? null
    : "The file holds no device events.",
  needs: () => ["device", "host", "kernels", "passes", "layers", "modules",
                "op_efficiency", "steps", "#counters", "#autograd",
                "gaps", "idle_gaps", ...kAnswerBlocks],
  prepare: preparePyramids,
  draw(app, root) { current = new Timeline(app, root); },
  mounted() { current?.mount(); },
  key: (_app, event) => current?.key(event) ?? false,
};
