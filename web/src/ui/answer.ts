// SPDX-License-Identifier: Apache-2.0
//
// The pane of the answer: what the window was spent on, what limits it, and
// what to change. It stands above the timeline, where what is pointed at here
// stays lit. Words and numbers are the engine's.

import { fixSpans, idleSpans, kNoSpans, lastAt, type BarPart, type Fix,
  type Spans } from "../data/answer";
import { gapsOf, gpusOf, longestGaps, partsOf, type Gpu } from
  "../data/gpus";
import { groupIndex, kGroups } from "../data/groups";
import type { App, Patch } from "./app";
import { groupColor, spentColor, spentPattern } from "./colors";
import { copyText, h } from "./dom";
import type { Entry } from "./evidence";
import { brief, clean, count } from "./format";
import { showGap } from "./gaps";

const kLeastSegment = 0.004;  // of the bar: narrower ones are in the legend
const kLegend = 9;
const kLabelShare = 0.09;

// What is pointed at: a fix, a part of the idle time, or a group of families.
export interface Lit { of: "fix" | "idle" | "group"; kind: number }

export function isAnswerView(app: App): boolean {
  return app.model.manifest.answer !== undefined &&
    (app.state.view === "timeline" || app.state.view === "overview");
}

// The rank of the fix that is open; 0: none.
export function openFix(app: App): number {
  const rank = Number(app.option("answer.fix") || 0);
  return app.model.manifest.answer?.fixes[rank - 1] ? rank : 0;
}

const known = new WeakMap<Gpu, Map<string, Spans>>();

function pick(from: { start: ArrayLike<number>; dur: ArrayLike<number> },
              count: number, has: (row: number) => boolean): Spans {
  const rows: number[] = [];
  for (let row = 0; row < count; ++row) if (has(row)) rows.push(row);
  return { start: Float64Array.from(rows, (row) => from.start[row]!),
           dur: Float64Array.from(rows, (row) => from.dur[row]!),
           kind: new Uint8Array(rows.length) };
}

// The stretches of a GPU that stay lit, found once: pointing asks for them
// again and again.
export function litSpans(app: App, gpu: Gpu, { of, kind }: Lit): Spans {
  const { model } = app;
  if (!model.device) return kNoSpans;
  let made = known.get(gpu);
  if (!made) known.set(gpu, made = new Map<string, Spans>());
  const key = `${of} ${kind}`;
  let spans = made.get(key);
  if (spans) return spans;
  if (of === "group") {
    const parts = partsOf(model, gpu, null);
    const index = groupIndex(model);
    spans = pick(parts, parts.count, (row) => index[parts.family[row]!] === kind);
  } else {
    const all = of === "fix" ? fixSpans(model, gpu) : idleSpans(model, gpu);
    if (all === kNoSpans) return all;  // not read yet, or none
    spans = pick(all, all.kind.length, (row) => all.kind[row] === kind);
  }
  made.set(key, spans);
  return spans;
}

// A fix by what ops could gain has no stretch of its own: nothing is dimmed.
export function hasSpans(app: App, lit: Lit): boolean {
  return app.model.device !== null && gpusOf(app.model).some((gpu) =>
    litSpans(app, gpu, lit).start.length > 0);
}

// The longest stretch, with a little room; of many short ones a window around
// the longest.
function around(app: App, lit: Lit): [number, number] | null {
  let best: [number, number] | null = null;
  for (const gpu of app.model.device ? gpusOf(app.model) : []) {
    const { start, dur } = litSpans(app, gpu, lit);
    for (let i = 0; i < start.length; ++i)
      if (!best || dur[i]! > best[1]) best = [start[i]!, dur[i]!];
  }
  if (!best) return null;
  const room = Math.max(best[1] * 0.6, 2000);
  return [Math.round(best[0] - room), Math.round(best[0] + best[1] + room)];
}

function pointing(app: App, lit: Lit): Record<string, () => void> {
  const on = () => app.light(lit);
  const off = () => app.light(null);
  return { pointerenter: on, pointerleave: off, focus: on, blur: off };
}

// --- the bar ---

interface Segment {
  key: string;
  words: string;
  ns: number;
  share: number;
  shown: string;    // "491 ms 46 %"
  color: string;
  hatched: boolean;
  lit: Lit | null;
  patch: Patch;
}

function groupPlace(name: string): number {
  return kGroups.findIndex((group) => group === name);
}
function groupOf(app: App, family: string): number {
  const found = app.model.families.find((one) => one.name === family);
  return groupPlace(found?.group ?? "other");
}

// Families of a group are one; idle parts, communication and copies are those
// of the engine.
function segments(app: App): Segment[] {
  const answer = app.model.manifest.answer!;
  const total = answer.window_ns * Math.max(1, answer.devices.length);
  const out: Segment[] = [];
  for (const [at, part] of answer.bar.entries()) {
    if (part.ns <= 0) continue;
    if (part.key === "compute") {
      const sums = new Map<number, number>();
      for (const { family, ns } of part.families ?? []) {
        const group = groupOf(app, family);
        sums.set(group, (sums.get(group) ?? 0) + ns);
      }
      for (const [group, ns] of [...sums].sort((a, b) => b[1] - a[1])) {
        const name = kGroups[group] ?? "other";
        out.push({ key: name, words: name, ns, share: ns / total,
          shown: brief(ns), color: groupColor(name), hatched: false,
          lit: { of: "group", kind: group },
          patch: { view: "kernels", chips: app.only("fam", name) } });
      }
      continue;
    }
    const work = part.key === "communication" || part.key === "copies";
    const group = groupPlace(!work ? "" : part.key === "copies" ? "memory"
      : "comm");
    out.push({ key: part.key, words: part.words, ns: part.ns,
      share: part.share, shown: `${part.shown.time} ${part.shown.share}`,
      color: work ? groupColor(kGroups[group]!) : spentColor(part.key),
      hatched: !work,
      lit: work ? { of: "group", kind: group } : { of: "idle", kind: at },
      patch: work ? { view: "kernels", chips: app.only("fam", kGroups[group]!) }
        : idlePatch(app, at, part) });
  }
  return out;
}

// The longest stretch of this kind.
function idlePatch(app: App, kind: number, part: BarPart): Patch {
  if (part.key === "outside") return app.rowsHref("gpu_timeline");
  const zoom = around(app, { of: "idle", kind });
  return zoom ? { view: "timeline", zoom } : app.rowsHref("gaps");
}

function paint(element: HTMLElement, segment: Segment): HTMLElement {
  element.style.background = segment.hatched ? spentPattern(segment.key)
    : segment.color;
  return element;
}

function drawBar(app: App): HTMLElement {
  const answer = app.model.manifest.answer!;
  const all = segments(app);
  const labels = new Map<string, string>();
  const compute = answer.bar[0];
  const firstWork = all.find((one) => one.lit?.of === "group" &&
    one.key !== "communication" && one.key !== "copies");
  if (compute && firstWork && firstWork.share >= kLabelShare) {
    labels.set(firstWork.key,
      `compute ${compute.shown.time} ${compute.shown.share}`);
  }
  for (const one of all) {
    if (one !== firstWork && one.share >= kLabelShare * 1.4 &&
        (one.hatched || one.key === "communication" || one.key === "copies"))
      labels.set(one.key, `${one.words} ${one.shown}`);
  }
  const bar = h("div", { class: "spent", role: "img", "aria-label":
    all.map((one) => `${one.words} ${one.shown}`).join(", ") });
  for (const one of all) {
    const label = labels.get(one.key);
    const part = paint(h("span", { title: `${one.words} ${one.shown}`,
      "data-spent": one.key, "data-ns": one.ns, ...one.lit ? pointing(app, one.lit) : {},
      click: () => app.go(one.patch) },
      label ? h("b", {}, label) : null), one);
    part.style.flexGrow = String(one.ns);
    if (one.share < kLeastSegment) part.style.minWidth = "0";
    bar.append(part);
  }
  return bar;
}

function drawSpentLegend(app: App): HTMLElement {
  const all = segments(app).sort((a, b) => b.ns - a.ns);
  const shown = all.slice(0, kLegend);
  const rest = all.slice(kLegend);
  return h("div", { class: "spentlegend" }, ...shown.map((one) =>
    h("a", { href: app.href(one.patch), title: `${one.words} ${one.shown}`,
             "data-k": `spent.${one.key}`,
             ...one.lit ? pointing(app, one.lit) : {} },
      paint(h("i"), one), one.words, " ", one.shown)),
    rest.length > 0 ? h("span", { class: "muted", title: rest.map((one) =>
      `${one.words} ${one.shown}`).join(", ") }, `+ ${rest.length} smaller`)
      : null);
}

// --- fixes ---

// What a fix takes away: a part of the idle time, or a family.
function fixColor(app: App, at: number): string {
  const { model } = app;
  const idle = new Map<number, number>();
  const work = new Map<number, number>();
  for (const gpu of model.device ? gpusOf(model) : []) {
    const spans = litSpans(app, gpu, { of: "fix", kind: at });
    const gaps = idleSpans(model, gpu);
    const parts = spans.start.length > 0 ? partsOf(model, gpu, null) : null;
    const index = groupIndex(model);
    const step = Math.max(1, Math.floor(spans.start.length / 500));
    for (let i = 0; i < spans.start.length; i += step) {
      const middle = spans.start[i]! + spans.dur[i]! / 2;
      const gap = lastAt(gaps, middle);
      if (gap >= 0 && gaps.start[gap]! + gaps.dur[gap]! > middle) {
        const kind = gaps.kind[gap]!;
        idle.set(kind, (idle.get(kind) ?? 0) + spans.dur[i]!);
        continue;
      }
      const part = lastAt({ ...parts!, start: parts!.start.subarray(0,
        parts!.count), kind: new Uint8Array(0) }, middle);
      if (part < 0) continue;
      const group = index[parts!.family[part]!]!;
      work.set(group, (work.get(group) ?? 0) + spans.dur[i]!);
    }
  }
  const most = (of: Map<number, number>) => [...of].reduce((a, b) =>
    b[1] > a[1] ? b : a, [-1, 0] as [number, number]);
  const [part, ns] = most(idle);
  const [group, busy] = most(work);
  if (part < 0 && group < 0) return "var(--muted)";
  return ns >= busy ? spentColor(model.manifest.answer!.bar[part]!.key)
    : groupColor(kGroups[group]!);
}

function fixPatch(app: App, fix: Fix): Patch {
  const on = openFix(app) !== fix.rank;
  const zoom = on ? around(app, { of: "fix", kind: fix.rank - 1 }) : null;
  return { ...app.model.hasEvents ? { view: "timeline" } : {},
    selected: "", zoom,
    ...app.withOption("answer.fix", on ? String(fix.rank) : "") };
}

export function fixText(fix: Fix): string {
  return [`${fix.do}: ${fix.shown.before} -> ${fix.shown.after} ` +
    `(${fix.shown.gain}; ${fix.how}, ${fix.sure})`, ...fix.text,
    ...fix.where.shown ? [`at ${fix.where.shown}`] : [],
    ...fix.verify ? [`proof: ${fix.verify}`] : []].join("\n");
}

function copyButton(app: App, fix: Fix): HTMLElement {
  return app.button("copy", () => void copyText(fixText(fix)).then((done) =>
    app.say(done ? "Copied what to do" : "The browser did not allow to copy")),
    { "data-k": `answer.copy.${fix.rank}`, title: "Copy what to do",
      "aria-label": `Copy what to do: ${fix.do}` });
}

function drawCard(app: App, fix: Fix): HTMLElement {
  const lit: Lit = { of: "fix", kind: fix.rank - 1 };
  const card = h("div", { class: "fix" + (fix.sure === "open" ? " open" : ""),
    "data-fix": fix.rank, pointerenter: () => app.light(lit),
    pointerleave: () => app.light(null) },
    h("button", { type: "button", class: "do", title: fix.what,
      "data-k": `answer.fix.${fix.rank}`,
      "aria-pressed": String(openFix(app) === fix.rank),
      focus: () => app.light(lit), blur: () => app.light(null),
      click: () => app.go(fixPatch(app, fix)) },
      h("span", { class: "rank" }, fix.rank), " ", clean(fix.do, 80)),
    h("p", { class: "gain" }, h("span", { class: "from" },
      `${fix.shown.before} \u2192 `), h("b", {}, fix.shown.after), " ",
      h("b", { class: "good" }, fix.shown.gain)),
    h("p", { class: "muted how" }, `${fix.how} \u00b7 ${fix.sure} \u00b7 ` +
      fix.effort),
    h("p", { class: "place", title: [fix.where.own?.path,
      fix.where.lib?.path].filter((path) => path).join("\n") ||
      fix.text[0] || "" },
      clean(fix.where.shown || fix.text[0] || "", 200)),
    copyButton(app, fix));
  card.style.borderLeftColor = fixColor(app, fix.rank - 1);
  return card;
}

function drawWarnings(app: App): HTMLElement | null {
  const { warnings, fixes, more } = app.model.manifest.answer!;
  if (warnings.length === 0) {
    return fixes.length > 0 ? null : h("div", { class: "fix quiet" },
      h("p", { class: "muted" }, `No fix found: ${more.rules_looked} of ` +
        `${more.rules} rules looked.`));
  }
  const words = warnings.map((one) => one.title + (one.do ? `: ${one.do}` : ""));
  return h("a", { class: "fix quiet", href: app.href({ view: "health" }),
                  title: words.join("\n"), "data-k": "answer.warnings" },
    h("b", {}, warnings.length === 1 ? "1 warning"
      : `${warnings.length} warnings`),
    ...warnings.slice(0, 2).map((one) => h("p", {}, clean(one.title, 200),
      one.do ? h("span", { class: "muted" }, `: ${lower(clean(one.do, 200))}`)
        : null)));
}

// --- the pane ---

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function fact(app: App, name: string, value: string, patch: Patch | null):
    HTMLElement {
  return h("span", {}, `${name} `, patch ? app.link(h("b", {}, value), patch,
    { "data-k": `answer.${name.split(" ")[0]!.toLowerCase()}` })
    : h("b", {}, value));
}

function facts(app: App): HTMLElement {
  const { model } = app;
  const answer = model.manifest.answer!;
  const limit = answer.limited_by;
  const why: Patch = limit.class === "GPU" || limit.class === "device"
    ? model.hasTable("op_efficiency") ? { view: "roofline" } : { view: "kernels" }
    : limit.class === "host" ? { view: "host" } : app.rowsHref("gpu_timeline");
  const more = answer.more.smaller;
  return h("p", { class: "facts" },
    fact(app, "Window", answer.window, app.rowsHref("gpu_timeline")),
    ...answer.devices.length > 0 ? [
      fact(app, "MFU", answer.mfu.shown,
           model.hasTable("mfu_run") ? app.rowsHref("mfu_run") : null),
      fact(app, "Limited by", limit.shown, why)] : [],
    ...answer.together ? [fact(app, "All fixes", answer.together,
                               app.rowsHref("findings"))] : [],
    ...more > 0 ? [app.link(`+ ${more} smaller`, app.rowsHref("findings"))]
      : []);
}

export function drawAnswer(app: App, pane: HTMLElement): void {
  pane.hidden = !isAnswerView(app);
  if (pane.hidden) {
    pane.replaceChildren();
    return;
  }
  const answer = app.model.manifest.answer!;
  const quiet = answer.fixes.length < 5 ? drawWarnings(app) : null;
  pane.replaceChildren(
    h("div", { class: "said" }, h("h2", {}, answer.sentence), facts(app)),
    ...answer.devices.length > 0 ? [drawBar(app), drawSpentLegend(app)] : [],
    h("div", { class: "fixes" }, ...answer.fixes.map((fix) =>
      drawCard(app, fix)), quiet));
  const lit = openFix(app);
  app.light(lit > 0 ? { of: "fix", kind: lit - 1 } : null);
}

// --- the panel, where nothing else is selected ---

export function fixBody(app: App, rank: number):
    { title: string; entries: (Entry | null)[]; more: Node[] } {
  const fix = app.model.manifest.answer!.fixes[rank - 1]!;
  const line = (at: { path: string; line: number; function: string } | null) =>
    at ? `${clean(at.path, 300)}:${at.line} ${clean(at.function, 80)}` : "";
  const spans = (app.model.device ? gpusOf(app.model) : []).map((gpu) =>
    litSpans(app, gpu, { of: "fix", kind: rank - 1 }));
  const number = spans.reduce((sum, one) => sum + one.start.length, 0);
  const lit = spans.reduce((sum, one) => sum + one.dur.reduce((a, b) => a + b,
                                                              0), 0);
  const folded = fix.where.framework_frames;
  return { title: `${rank} ${fix.do}`, entries: [
    ["saves", `${fix.shown.before} \u2192 ${fix.shown.after} (` +
      `${fix.shown.gain}), ${fix.low_ns === fix.high_ns ? fix.how
        : `${fix.how} ${brief(fix.low_ns)} to ${brief(fix.high_ns)}`}`],
    ["how sure", `${fix.sure}; ${fix.effort}`],
    ["why", clean(fix.what, 600)],
    ["do", h("ol", { class: "steps" }, ...fix.text.map((text) =>
      h("li", {}, clean(text, 600))))],
    fix.where.own ? ["your line", line(fix.where.own)] : null,
    fix.where.lib ? ["library", line(fix.where.lib)] : null,
    folded > 0 ? ["frames", `${folded} framework ` +
      `${folded === 1 ? "frame" : "frames"} folded`] : null,
    number > 0 ? ["lit", `${count(number)} ${number === 1 ? "stretch"
      : "stretches"} of ${brief(lit)}`] : null,
    fix.verify ? ["proof", clean(fix.verify, 300)] : null,
    fix.rule ? ["rows", app.link("its evidence", app.rowsHref(
      "finding_evidence", "finding", fix.id)), ", ", app.link("the finding",
        app.rowsHref("findings", "id", fix.id))] : null,
  ], more: [h("div", { class: "tools" }, copyButton(app, fix))] };
}

// The window itself.
export function windowBody(app: App):
    { title: string; entries: (Entry | null)[]; more: Node[] } {
  const { model } = app;
  const answer = model.manifest.answer!;
  const gaps = longestGaps(model).slice(0, 4);
  const passes = model.table("passes");
  return { title: `${answer.window} on ${clean(answer.device, 80) ||
    "an unknown device"}`, entries: [
    ["events", `${count(model.device?.total ?? 0)} device events` +
      (passes && passes.rows > 0 ? `, ${count(passes.rows)} ` +
        (passes.rows === 1 ? "pass" : "passes") : "")],
    gaps.length > 0 ? ["longest gaps", ...gaps.flatMap((gap, i) => {
      const { start, dur } = gapsOf(model, gap.gpu);
      return [...i > 0 ? [", "] : [], app.link(brief(dur[gap.at]!),
        showGap(app, gap)), ` at ${brief(start[gap.at]!)}`];
    })] : null,
    answer.mfu.value !== null ? ["MFU", `${answer.mfu.shown} of ` +
      `${(answer.mfu.peak_flops / 1e12).toPrecision(4)} TFLOP/s ` +
      `${answer.mfu.type.replace(/^matrix_/, "")}, over ` +
      `${brief(answer.mfu.period_ns)}`] : ["MFU", answer.mfu.shown],
    ...answer.hot.map((one): Entry => ["hot op", clean(one, 300)]),
    ["rules", `${answer.more.rules_looked} of ${answer.more.rules} looked`],
    ...answer.warnings.slice(0, 4).map((one): Entry => ["warning",
      clean(one.title, 300) + (one.do ? `: ${lower(clean(one.do, 300))}` : "")]),
  ], more: [] };
}
