// SPDX-License-Identifier: Apache-2.0
//
// Many runs in one picture: a series of a store in the order of time, with the
// places where the program changed, or several traces against the first one,
// each with its interval.

import { severalCompared, type Table } from "../data/model";
import type { App, Patch, View } from "../ui/app";
import { h, svg } from "../ui/dom";
import { clean, time } from "../ui/format";
import { drawNotes, drawVerdicts } from "../ui/notes";

interface Dot {
  value: number;
  low: number;
  high: number;
  label: string;
  words: string;
  class: string;
  patch: Patch;
}

const kHeight = 220;
const kTop = 14;
const kBottom = 26;
const kLeft = 74;
const kMostLabels = 12;

function percent(value: number): string {
  return `${value > 0 ? "+" : ""}${value.toFixed(1)} %`;
}

// `marks`: before which dots the program changed, with what is said of it.
function drawDots(app: App, label: string, dots: Dot[],
                  marks: { at: number; words: string; patch: Patch }[],
                  words: (value: number) => string): SVGElement {
  const width = Math.max(300, Math.min(1100,
    (document.querySelector("main")?.clientWidth ?? 900) - 40));
  let low = Math.min(...dots.map((dot) => dot.low));
  let high = Math.max(...dots.map((dot) => dot.high));
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  low -= room;
  high += room;
  const x = (at: number) => kLeft + (width - kLeft - 14) * (at + 0.5) / dots.length;
  const y = (value: number) =>
    kTop + (kHeight - kTop - kBottom) * (high - value) / (high - low);
  const picture = svg("svg", { class: "chart", role: "img", "aria-label": label,
    viewBox: `0 0 ${width} ${kHeight}`, width, height: kHeight });
  for (let i = 0; i <= 4; ++i) {
    const value = low + (high - low) * i / 4;
    picture.append(svg("line", { class: "grid", x1: kLeft, x2: width,
                                 y1: y(value), y2: y(value) }),
      svg("text", { class: "axis", x: kLeft - 6, y: y(value) + 4,
                    "text-anchor": "end" }, words(value)));
  }
  for (const { at, words: said, patch } of marks) {
    const line = x(at) - (x(1) - x(0)) / 2;
    picture.append(svg("a", { href: app.href(patch) },
      svg("line", { x1: line, x2: line, y1: kTop, y2: kHeight - kBottom,
                    stroke: "var(--warn)", "stroke-width": 2 }),
      svg("title", {}, said)));
  }
  const step = Math.ceil(dots.length / kMostLabels);
  dots.forEach((dot, i) => {
    if (dot.low < dot.high) {
      picture.append(svg("line", { x1: x(i), x2: x(i), y1: y(dot.low),
        y2: y(dot.high), stroke: "var(--muted)", "stroke-width": 2 }));
    }
    picture.append(svg("a", { href: app.href(dot.patch), class: dot.class },
      svg("circle", { cx: x(i), cy: y(dot.value), r: dots.length > 200 ? 2 : 4,
        fill: dot.class === "odd" ? "none" : "var(--link)",
        stroke: "var(--link)" }), svg("title", {}, dot.words)));
    if (i % step === 0) {
      picture.append(svg("text", { class: "axis", x: x(i), y: kHeight - 8,
        "text-anchor": "middle" }, clean(dot.label, 14)));
    }
  });
  return picture;
}

// A name of a file leads to it, where the page lies beside it.
function fileLink(text: string, path: string): Node | string {
  return path === "" ? text : h("a", { href: "file://" + encodeURI(path) }, text);
}

function drawSeries(app: App, root: HTMLElement, points: Table): void {
  const changes = app.model.table("trend_changes");
  const series = new Map<string, number[]>();
  for (let row = 0; row < points.rows; ++row) {
    if (points.at(row, "value_us") === null) continue;
    const key = points.str(row, "metric") + "\n" + points.str(row, "key");
    series.set(key, [...series.get(key) ?? [], row]);
  }
  for (const [key, rows] of series) {
    const [metric, of] = key.split("\n") as [string, string];
    const dots = rows.map((row): Dot => {
      const value = points.num(row, "value_us");
      const name = points.str(row, "name");
      const commit = points.str(row, "commit");
      return { value, low: value, high: value, label: name,
        class: points.str(row, "flag") === "single" ? "odd" : "",
        words: clean([`${name}: ${time(value)}`, commit,
          points.str(row, "recorded_at"), points.str(row, "source")]
          .filter((text) => text !== "").join(", ")),
        patch: app.rowsHref("trend_points", "name", name) };
    });
    const marks = [];
    const said = h("ul");
    for (let row = 0; row < (changes?.rows ?? 0); ++row) {
      if (changes!.str(row, "metric") !== metric ||
          changes!.str(row, "key") !== of) continue;
      const [after, before] = ["name", "previous"].map((column) =>
        changes!.str(row, column)) as [string, string];
      const words = clean(`${percent(changes!.num(row, "change_percent"))} since ` +
        `${after} ${changes!.str(row, "commit")} ${changes!.str(row, "part")}`);
      const patch = app.rowsHref("trend_changes", "name", after);
      marks.push({ at: changes!.num(row, "index"), words, patch });
      const source = (name: string) => {
        const at = rows.find((other) => points.str(other, "name") === name);
        return at === undefined ? "" : points.str(at, "source");
      };
      said.append(h("li", {}, app.link(words, patch), "; traces: ",
        fileLink(clean(before), source(before)), ", ",
        fileLink(clean(after), source(after))));
    }
    root.append(h("h2", {}, clean(metric)), drawDots(app,
      `${metric} of ${dots.length} runs`, dots, marks, time), said);
  }
}

function drawAgainst(app: App, root: HTMLElement, verdicts: Table): void {
  const scopes = new Map<string, Dot[]>();
  for (let row = 0; row < verdicts.rows; ++row) {
    if (verdicts.at(row, "change_percent") === null) continue;
    const scope = verdicts.str(row, "scope");
    const value = verdicts.num(row, "change_percent");
    const known = verdicts.at(row, "low_percent") !== null;
    const side = verdicts.str(row, "with").toUpperCase();
    const input = app.model.manifest.inputs?.[side.charCodeAt(0) - 65] ?? "";
    const dots = scopes.get(scope) ?? [{ value: 0, low: 0, high: 0, label: "A",
      words: clean(app.model.manifest.inputs?.[0] ?? "A"), class: "",
      patch: app.rowsHref("diff_verdict") }];
    dots.push({ value, low: known ? verdicts.num(row, "low_percent") : value,
      high: known ? verdicts.num(row, "high_percent") : value, label: side,
      words: clean(`${side} (${input}): ${verdicts.str(row, "what")}`),
      class: "", patch: app.rowsHref("diff_verdict", "with",
                                     side.toLowerCase()) });
    scopes.set(scope, dots);
  }
  for (const [scope, dots] of scopes) {
    root.append(h("h2", {}, `${clean(scope)}: change against A`),
      drawDots(app, `${scope} of ${dots.length} traces`, dots, [], percent));
  }
}


export const runsView: View = {
  id: "runs",
  title: "Runs",
  filtered: false,
  missing: (model) => model.hasTable("trend_points") || severalCompared(model) ? null
    : "One or two recordings; lamina runs trend -o x.html has a series.",
  needs: (model) => model.hasTable("trend_points")
    ? ["trend_points", "trend_changes"] : ["diff_verdict"],
  draw(app, root) {
    root.append(...drawVerdicts(app));
    const points = app.model.table("trend_points");
    if (points) {
      drawSeries(app, root, points);
    } else {
      drawAgainst(app, root, app.model.table("diff_verdict")!);
    }
    const rest = app.model.manifest.notes.filter((note) =>
      note.severity !== "verdict");
    if (rest.length > 0) root.append(drawNotes(app, rest));
  },
};
