// SPDX-License-Identifier: Apache-2.0
//
// An open row of the ops: its kernels by their position in a call, and its
// calls by length.

import { byPosition, callsOf } from "../data/calls";
import { drawCalls } from "./calls";
import type { App } from "../ui/app";
import { groupColor } from "../ui/colors";
import { h } from "../ui/dom";
import { eventsPatch, nameIds, showEvent } from "../ui/events";
import { count, kernelName, time } from "../ui/format";
import { nameCells } from "../ui/names";

export function drawOpCalls(app: App, row: number, key: string,
                            group: string): HTMLElement {
  const device = app.model.device!;
  const calls = callsOf(device, row, app.selection.mask);
  const names = nameIds(app);
  const places = byPosition(device, calls, names);
  const shown = nameCells(places.map((at) =>
    kernelName(app.model.text(at.name), 160)));
  const body = h("tbody", {}, ...places.map((at) => h("tr", {},
    h("td", { class: "num" }, at.position + 1),
    h("td", { class: "wide" }, app.link(
      shown(kernelName(app.model.text(at.name), 160)), { view: "kernels",
        chips: app.only("name", app.model.text(at.name)) })),
    h("td", { class: "num" }, app.link(count(at.events.length),
      eventsPatch(app, at.events, [key]))),
    ...[at.ns, at.ns / at.events.length, at.least, at.most].map((ns) =>
      h("td", { class: "num" }, time(ns))))));
  // The longest event of the slowest call, and of the one in the middle.
  const bySize = [...calls].sort((a, b) => b.ns - a.ns);
  const call = (at: number, words: string) => {
    const { events, ns } = bySize[at]!;
    const longest = events.reduce((best, event) =>
      device.dur[event]! > device.dur[best]! ? event : best);
    return app.link(`${words} ${time(ns)}`,
      showEvent(app, device.uid[longest]!), { "data-k": `call.${words}` });
  };
  const heads = ["position", "kernel", "events", "time", "mean", "min", "max"];
  const sizes = new Set(calls.map((call) => call.events.length));
  return h("div", { class: "opcalls" },
    h("p", { class: "muted" }, `${count(calls.length)} calls have ` +
      (device.merged ? "single " : "") +
      "events that pass the filter; kernels by position in their call" +
      (sizes.size > 1 ? ". Not all calls launched the same number." : "."), ...bySize.length > 0
      ? [" Of the calls the ", call(0, "slowest"), ", the ",
         call(bySize.length >> 1, "median"), "."] : []),
    h("div", { class: "two" },
      h("div", { class: "tablebox" }, h("table", {}, h("thead", {}, h("tr", {},
        ...heads.map((head, i) => h("th", { scope: "col",
          class: i === 1 ? "wide" : "num" }, head)))), body)),
      h("div", {}, h("h3", {}, "Calls by length"),
        drawCalls(calls, groupColor(group), (bin) => app.href(eventsPatch(app,
          bin.calls.flatMap((call) => call.events), [key]))))));
}
