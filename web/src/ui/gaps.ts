// SPDX-License-Identifier: Apache-2.0
//
// Idle time of a GPU as something to point at: its name, its place in the
// address, its panel, and the way from one gap to the next.

import { causeOf, gapBefore, gapsOf, longestGaps, type GapAt } from
  "../data/gpus";
import { laneName } from "../data/filter";
import type { App, Patch } from "./app";
import { h } from "./dom";
import { nameIds, showEvent } from "./events";
import { clean, count, kernelName, percent, time } from "./format";
import type { Entry } from "./evidence";
import { styled } from "./prose";

const kCauses: Record<string, string> = {
  unlinked: "launch unknown", graph: "spacing inside a graph launch",
  memcpy: "waits for a copy", sync: "host blocked",
  no_work: "nothing recorded on the host", host_bound: "host busy",
  launch_overhead: "launch overhead", dependency: "waits for another stream",
  kernel_wait: "usual spacing of kernels",
  submitted_wait: "submitted, and not started",
  host_busy: "host busy", host_blocked: "host blocked",
};

const kMostOpen = 8;   // innermost of what is open on the host

// "zoom_shift" of "<built-in function zoom_shift>".
function hostName(name: string): string {
  return /^<built-in (?:function|method) ([^\s>]+)/.exec(name)?.[1] ?? name;
}

// "126.1 ms, host busy: zoom_shift".
export function gapWords(app: App, gap: GapAt): string {
  const { model } = app;
  const gaps = gapsOf(model, gap.gpu);
  const length = time(gaps.dur[gap.at]!);
  const table = model.table("gaps");
  const uid = model.device!.uid[gaps.next[gap.at]!]!;
  const row = table?.rowWhere("uid", uid) ?? -1;
  const long = table && row >= 0 &&
    table.num(row, "dur_us") === gaps.dur[gap.at] ? row : -1;
  const found = causeOf(model, gap);
  if (!found && long < 0) return `${length} idle`;
  const cause = found?.cause ?? table!.str(long, "cause");
  const host = long >= 0 && /^host_/.test(cause)
    ? table!.str(long, "host_event") : found?.host ?? "";
  return `${length}, ${kCauses[cause] ?? cause.replace(/_/g, " ")}` +
    (host ? `: ${clean(hostName(host), 80)}` : "");
}

// --- the address ---

let last: { selected: string; gap: GapAt | null } = { selected: "", gap: null };

export function selectedGap(app: App): GapAt | null {
  const { selected } = app.state;
  const uid = /^gap\.(\d+)$/.exec(selected)?.[1];
  if (uid === undefined || !app.model.device) return null;
  if (last.selected !== selected)
    last = { selected, gap: gapBefore(app.model, Number(uid)) };
  return last.gap;
}

export function showGap(app: App, gap: GapAt): Patch {
  const gaps = gapsOf(app.model, gap.gpu);
  const [start, dur] = [gaps.start[gap.at]!, gaps.dur[gap.at]!];
  const room = dur * 0.1 + 500;
  return { view: "timeline",
    selected: `gap.${app.model.device!.uid[gaps.next[gap.at]!]}`,
    zoom: [Math.round(start - room), Math.round(start + dur + room)] };
}

// The next shorter one, or the next longer; without one selected the longest.
export function stepGap(app: App, step: 1 | -1): Patch | null {
  const all = longestGaps(app.model);
  const now = selectedGap(app);
  const at = now ? all.findIndex(({ gpu, at: other }) => gpu === now.gpu &&
                                 other === now.at) + step : 0;
  return all[at] ? showGap(app, all[at]) : null;
}

// --- the panel ---

function eventLink(app: App, row: number): HTMLElement {
  const name = app.model.text(nameIds(app)(row));
  return app.link(kernelName(name, 80), showEvent(app,
                                                  app.model.device!.uid[row]!));
}

function launchEntry(app: App, next: number): Entry | null {
  const { device, host } = app.model;
  const at = device!.launch[next]! - 1;
  if (!host || at < 0) return null;
  const start = host.start[at]!;
  return ["launch", app.link(clean(app.model.text(host.name[at]!), 80),
    showEvent(app, host.uid[at]!)), ` of ${time(host.dur[at]!)}, ` +
    `${time(device!.start[next]! - start)} before the work behind the gap ` +
    "begins"];
}

// What is open at once, the innermost first: a line for each.
export function chain(links: HTMLElement[], more: boolean): HTMLElement {
  return h("ol", { class: "chain" }, ...links.map((link) => {
    link.title = link.textContent ?? "";
    return h("li", {}, link);
  }), more ? h("li", { class: "muted" }, "\u2026") : null);
}

// What is open on the thread of the launch in the middle of the gap.
function hostEntry(app: App, next: number, middle: number): Entry | null {
  const { device, host, hostTracks } = app.model;
  const launch = device!.launch[next]! - 1;
  if (!host || launch < 0) return null;
  const own = hostTracks.find((t) => launch >= t.begin && launch < t.end);
  const open: number[] = [];
  for (const track of hostTracks) {
    if (!own || track.thread !== own.thread || track.process !== own.process)
      continue;
    for (let i = track.begin; i < track.end && host.start[i]! <= middle; ++i)
      if (host.start[i]! + host.dur[i]! > middle) open.push(i);
  }
  open.sort((a, b) => host.dur[b]! - host.dur[a]!);
  const inner = open.slice(-kMostOpen);
  // The innermost first.
  return open.length === 0 ? null : ["host then", chain(inner.reverse().map((i) =>
    app.link(clean(app.model.text(host.name[i]!), 200),
             showEvent(app, host.uid[i]!))), open.length > inner.length)];
}

// Gaps between kernels of the same two names.
function equalEntry(app: App, gap: GapAt): Entry {
  const gaps = gapsOf(app.model, gap.gpu);
  const nameOf = nameIds(app);
  const pair = (at: number) => [nameOf(gaps.before[at]!),
                                nameOf(gaps.next[at]!)].join();
  const key = pair(gap.at);
  const same = Array.from(gaps.dur.keys()).filter((at) => pair(at) === key);
  const sum = same.reduce((all, at) => all + gaps.dur[at]!, 0);
  const longer = same.filter((at) => gaps.dur[at]! > gaps.dur[gap.at]!).length;
  const here = same.indexOf(gap.at);
  const step = (to: number, words: string) => same[to] === undefined ? []
    : [", ", app.link(words, showGap(app, { gpu: gap.gpu, at: same[to]! }),
                      { "data-k": `gap.${words}` })];
  return ["equal gaps", `${count(same.length)} between these two kernels, ` +
    `${time(sum)}; this is number ${count(longer + 1)} by length`,
    ...step(here - 1, "previous"), ...step(here + 1, "next")];
}

export function gapBody(app: App, gap: GapAt):
    { title: string; entries: (Entry | null)[]; more: Node[] } {
  const { model } = app;
  const device = model.device!;
  const gaps = gapsOf(model, gap.gpu);
  const [start, dur] = [gaps.start[gap.at]!, gaps.dur[gap.at]!];
  const [before, next] = [gaps.before[gap.at]!, gaps.next[gap.at]!];
  const found = causeOf(model, gap);
  const parts = found?.parts ?? [];
  return { title: `Idle ${gapWords(app, gap)}`, entries: [
    ["start", `${count(start)} ns`], ["end", `${count(start + dur)} ns`],
    ["length", `${count(dur)} ns`],
    ["before", eventLink(app, before), ` of ${time(device.dur[before]!)} on ` +
      laneName(model, device.lane[before]!)],
    ["after", eventLink(app, next), ` of ${time(device.dur[next]!)} on ` +
      laneName(model, device.lane[next]!)],
    launchEntry(app, next), hostEntry(app, next, start + dur / 2),
    found?.thread ? ["thread", clean(found.thread, 80)] : null,
    found?.evidence ? ["evidence", clean(styled(found.evidence), 200)] : null,
    equalEntry(app, gap)],
    more: parts.length === 0 ? [h("p", { class: "muted" }, "What caused it is " +
        "told of the longest gaps alone.")]
      : [h("table", { class: "causes" }, h("caption", {}, "Causes"),
        h("tbody", {}, ...parts.map(({ what, ns }) => h("tr", {},
          h("td", {}, causeName(what)), h("td", { class: "num" }, time(ns)),
          h("td", { class: "num" }, percent(ns, dur))))))] };
}

// "host busy: data loader" of "host_bound/data_loader".
function causeName(what: string): string {
  const [cause, activity] = what.split("/") as [string, string | undefined];
  return (kCauses[cause] ?? cause.replace(/_/g, " ")) +
    (activity ? `: ${clean(activity.replace(/_/g, " "), 60)}` : "");
}
