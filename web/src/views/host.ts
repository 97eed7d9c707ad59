// SPDX-License-Identifier: Apache-2.0
//
// Host stacks: where a thread spent its time, or its time while the GPUs idle,
// as a flame graph with the heaviest stack on the left; of one function its
// callers and what it calls.

import { functionsOf, idleBefore, sandwich, stackTree, threadsOf, type Frame,
         type HostFunction, type Thread } from "../data/hoststacks";
import { node, type ModuleNode } from "../data/moduletree";
import { textTest } from "../data/filter";
import { drawIcicle } from "../draw/icicle";
import { svgFile } from "../draw/svgfile";
import type { App, Patch, View } from "../ui/app";
import { h } from "../ui/dom";
import { showEvent } from "../ui/events";
import { clean, count, percent, time } from "../ui/format";
import { choice, textFilter } from "../ui/inputs";
import { hint } from "../ui/paper";
import { drawTable } from "../ui/table";

const kLevels = 40;

interface Shown { root: Frame; thread: Thread; threads: Thread[] }

let cache: { key: string; app: App; shown: Shown } | null = null;

function weight(app: App): string {
  return app.option("host.time") === "all" ? "all" : "idle";
}

// The tree that the address names; made once.
function shownOf(app: App): Shown {
  const { model } = app;
  const threads = threadsOf(model);
  const wanted = app.option("host.thread");
  const thread = threads[Number(wanted)] ?? threads[0]!;
  const key = `${weight(app)} ${threads.indexOf(thread)}`;
  if (cache?.key !== key || cache.app !== app) {
    const idle = weight(app) === "idle" ? idleBefore(model) : null;
    const root = stackTree(model, thread, idle
      ? (from, to) => idle(to) - idle(from) : (from, to) => to - from);
    cache = { key, app, shown: { root, thread, threads } };
  }
  return cache.shown;
}

function nameOf(app: App, name: number): string {
  return name < 0 ? "all" : app.model.text(name).replace(/^nn\.Module: /, "");
}

// A tree of frames as boxes, the heaviest child first.
function boxes(app: App, at: Frame, key = ""): ModuleNode {
  const box = node("op", key, nameOf(app, at.name), 0);
  box.time = at.time;
  box.name = String(at.name);
  box.children = [...at.children.values()].filter((child) => child.time > 0)
    .sort((a, b) => b.time - a.time || a.name - b.name)
    .map((child) => boxes(app, child, `${key}/${child.name}`));
  return box;
}

function pick(app: App, name: number): Patch {
  return app.withOption("host.name", app.option("host.name") === String(name)
    ? "" : String(name));
}

function chosenName(app: App, root: Frame): number {
  const text = app.option("host.name");
  if (!/^\d{1,9}$/.test(text)) return -1;
  const name = Number(text);
  const has = (at: Frame): boolean => at.name === name ||
    [...at.children.values()].some(has);
  return has(root) ? name : -1;
}

function flame(app: App, box: HTMLElement, root: Frame, title: string): void {
  const { time: total } = root;
  if (total === 0) {
    box.append(h("p", { class: "empty" }, "No host event lies in this time."));
    return;
  }
  // Outer functions that hold everything are one box, but not one that was
  // asked for.
  let [inner, outer] = [root, 0];
  while (root.name < 0 && inner.children.size === 1) {
    const [child] = inner.children.values();
    if (child!.children.size === 0 || child!.time < total) break;
    inner = child!;
    ++outer;
  }
  const top = boxes(app, inner);
  if (outer > 1) top.label = `${outer} outer functions, the last ${top.label}`;
  const picture = drawIcicle(top, { levels: kLevels, total, title,
    width: Math.max(280, box.clientWidth),
    isChosen: (at) => at.name === app.option("host.name"),
    href: (at) => at.name === "-1" ? null
      : app.href(pick(app, Number(at.name))) });
  box.append(h("div", { class: "tools" }, h("h2", {}, title),
    app.button("SVG", () => svgFile(app, picture, title))), picture);
}

function functionTable(app: App, root: Frame): HTMLElement {
  const host = app.model.host!;
  const test = textTest(app.option("host.q"));
  const rows = functionsOf(root, host).filter((one) =>
    one.time > 0 && test(nameOf(app, one.name)));
  const ns = (key: "time" | "self") => ({
    numeric: true, value: (one: HostFunction) => one[key],
    text: (one: HostFunction) => time(one[key]) });
  return drawTable<HostFunction>(app, { id: "host", caption: "Host functions",
    rows, sort: "time-", note: weight(app) === "idle"
      ? "Times while no GPU works." : "",
    columns: [
      { key: "name", title: "function", wide: true,
        value: (one) => nameOf(app, one.name),
        cell: (one) => app.link(clean(nameOf(app, one.name), 200),
                                pick(app, one.name)) },
      { key: "time", title: "time", ...ns("time") },
      { key: "share", title: "%", numeric: true, value: (one) => one.time,
        text: (one) => percent(one.time, root.time) },
      { key: "self", title: "self", tip: "Without what it called",
        ...ns("self") },
      { key: "calls", title: "calls", numeric: true, value: (one) => one.calls,
        text: (one) => count(one.calls) },
      { key: "longest", title: "longest", numeric: true,
        value: (one) => host.dur[one.longest]!,
        text: (one) => time(host.dur[one.longest]!),
        cell: (one) => app.link(time(host.dur[one.longest]!),
          showEvent(app, host.uid[one.longest]!)) },
    ] });
}

export const hostView: View = {
  id: "host",
  title: "Host",
  filtered: false,
  missing: (model) => model.hostTracks.some((t) => t.end > t.begin) &&
    model.traces.length === 0 ? null : "The page holds no host events.",
  needs: () => ["host", "device", "kernels"],
  draw(app, root) {
    const { root: tree, thread, threads } = shownOf(app);
    const name = chosenName(app, tree);
    root.append(h("div", { class: "tools" },
      choice(app, "host.time", "Time", [
        ["", "Host time while the GPU idles"], ["all", "All host time"]]),
      choice(app, "host.thread", "Thread", threads.map((one, i) => [String(i),
        clean(one.name.replace(/^(?!thread)/, "thread "), 60)]), String(threads.indexOf(thread))),
      textFilter(app, "host.q", "Names with", "zoom"),
      h("span", { class: "muted" }, hint("A click shows who calls a function, " +
        "and what it calls."))),
      h("p", { class: "second" }, weight(app) === "idle"
        ? `No GPU works in ${time(tree.time)} of the time of this thread.`
        : `${time(tree.time)} of this thread are recorded.`),
      h("div", { class: "flames" }));
    if (app.model.thinned && weight(app) === "idle") {
      root.append(h("p", { class: "warn" }, "This page does not hold all device " +
        "events, so it cannot tell when the GPU idles."));
    }
    if (name >= 0) {
      root.append(h("p", {}, h("b", {}, clean(nameOf(app, name), 300)), ": ",
        app.link("all stacks again", app.withOption("host.name", ""))));
    }
    root.append(functionTable(app, tree));
  },
  mounted(app, root) {
    const box = root.querySelector<HTMLElement>(".flames");
    if (!box) return;
    const { root: tree } = shownOf(app);
    const name = chosenName(app, tree);
    if (name < 0) return flame(app, box, tree, "Stacks");
    const { callees, callers } = sandwich(tree, name);
    flame(app, box, callees, "What it calls");
    flame(app, box, callers, "Who calls it");
  },
};
