// SPDX-License-Identifier: Apache-2.0
//
// Who waits for whom, over all collectives: arrows from those that wait to the
// rank that comes last; and where the time of each rank went, as bars.

import type { Table } from "../data/model";
import type { App } from "./app";
import { stepBarColor } from "./colors";
import { h } from "./dom";
import { count, percent, time } from "./format";

export interface Waiting {
  late: string;                     // rank
  ns: number;                       // that all others wait for it
  from: { rank: string; ns: number }[];
}

// The ranks that others wait for, the worst first.
export function waitingOf(waits: Table, calls: Table): Waiting[] {
  const lateOf = new Map<string, string>();
  for (let row = 0; row < calls.rows; ++row)
    lateOf.set(calls.str(row, "id"), calls.str(row, "late_rank"));
  const found = new Map<string, Map<string, number>>();
  for (let row = 0; row < waits.rows; ++row) {
    const late = lateOf.get(waits.str(row, "id"));
    const rank = waits.str(row, "rank");
    const ns = waits.num(row, "wait_us");
    if (!late || late === rank || ns <= 0) continue;
    let from = found.get(late);
    if (!from) found.set(late, from = new Map());
    from.set(rank, (from.get(rank) ?? 0) + ns);
  }
  return [...found].map(([late, from]): Waiting => ({ late,
    ns: [...from.values()].reduce((sum, ns) => sum + ns, 0),
    from: [...from].map(([rank, ns]) => ({ rank, ns }))
      .sort((a, b) => Number(a.rank) - Number(b.rank)) }))
    .sort((a, b) => b.ns - a.ns || Number(a.late) - Number(b.late));
}

const kMostLines = 6;
const kMostNamed = 8;

function bar(share: number, color: string): HTMLElement {
  const part = h("i");
  part.style.width = 100 * share + "%";
  part.style.background = color;
  return part;
}

export function drawWaiting(app: App): HTMLElement | null {
  const waits = app.model.table("collective_waits");
  const calls = app.model.table("collectives");
  const all = waits && calls ? waitingOf(waits, calls) : [];
  const total = all.reduce((sum, { ns }) => sum + ns, 0);
  // What explains less than 1 % is folded.
  const shown = all.filter(({ ns }) => ns * 100 >= total).slice(0, kMostLines);
  if (shown.length === 0) return null;
  const names = ({ from }: Waiting) => from.length > kMostNamed
    ? `${count(from.length)} ranks` : from.map(({ rank }) => rank).join(", ");
  const rest = all.length - shown.length;
  return h("section", { class: "waiting" }, h("h2", {}, "Who waits for whom"),
    h("ul", {}, ...shown.map((one) => h("li", { "data-late": one.late },
      h("span", {}, `${names(one)} wait${one.from.length === 1 ? "s" : ""} for `,
        h("b", {}, one.late)),
      h("span", { class: "track" }, bar(one.ns / shown[0]!.ns, "var(--more)")),
      h("span", { class: "num" }, `${time(one.ns)}, ${percent(one.ns, total)}`)))),
    rest > 0 ? h("p", { class: "muted" }, rest === 1
      ? "1 more rank is behind less than 1 % of the waits."
      : `${count(rest)} more ranks are behind less than 1 % each.`) : null);
}

// --- bars ---

const kParts = ["computes", "exposed communication", "copies", "idle"] as const;
const kMostBars = 64;

// Of all steps of a rank; parts add up to its time on the device.
export function rankParts(table: Table): Map<string, number[]> {
  const sums = new Map<string, number[]>();
  for (let row = 0; row < table.rows; ++row) {
    const rank = table.str(row, "rank");
    const own = sums.get(rank) ?? [0, 0, 0, 0];
    const [compute, comm] = [table.num(row, "compute_us"),
                             table.num(row, "exposed_comm_us")];
    [compute, comm, table.num(row, "busy_us") - compute - comm,
     table.num(row, "idle_us")].forEach((ns, i) => { own[i]! += ns; });
    sums.set(rank, own);
  }
  return sums;
}

export function drawRankBars(app: App): HTMLElement | null {
  const table = app.model.table("rank_steps");
  if (!table || table.rows === 0) return null;
  const sums = rankParts(table);
  const total = (parts: number[]) => parts.reduce((sum, ns) => sum + ns, 0);
  const most = Math.max(1, ...[...sums.values()].map(total));
  const ranks = [...sums.keys()].sort((a, b) => Number(a) - Number(b));
  return h("section", {}, h("h2", {}, "Where the time of each rank went"),
    h("div", { class: "legend" }, ...kParts.map((part, i) => {
      const mark = h("span", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = stepBarColor(i);
      return h("span", {}, mark, part);
    })),
    h("ul", { class: "rankbars" }, ...ranks.slice(0, kMostBars).map((rank) => {
      const parts = sums.get(rank)!;
      const words = parts.flatMap((ns, i) => ns > 0
        ? [`${kParts[i]} ${time(ns)} (${percent(ns, total(parts))})`] : []);
      return h("li", { title: words.join(", "), "data-rank": rank },
        h("span", {}, `rank ${rank}`),
        h("span", { class: "track" }, ...parts.map((ns, i) =>
          bar(ns / most, stepBarColor(i)))),
        h("span", { class: "num" }, `exposed ${time(parts[1]!)}`));
    })),
    ranks.length > kMostBars ? h("p", { class: "muted" },
      `The first ${kMostBars} of ${count(ranks.length)} ranks.`) : null);
}
