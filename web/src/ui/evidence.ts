// SPDX-License-Identifier: Apache-2.0
//
// What the engine says of an event and why: the rule of its family, and what a
// replayed kernel was captured from.

import type { Table } from "../data/model";
import type { App } from "./app";
import { rowEvents } from "./compare";
import { clean, count } from "./format";

export type Entry = [string, ...(Node | string)[]];

function ruleWords(rules: Table, at: number): string {
  const text = (column: string, most = 120) =>
    clean(rules.str(at, column), most);
  const source = text("source");
  switch (rules.str(at, "by")) {
    case "collective": return "it is a collective";
    case "copy": return "it is a copy or a fill";
    case "none": return "no rule knows it";
    case "op": return `op ${text("op")}, ` + (source === "pattern"
      ? `pattern ${text("rule")}` : source === "generated"
      ? "a name made of ops" : `in the ${source} of ops`);
    default: return source === "generated" ? "a kernel name made of ops"
      : `kernel name, rule ${text("rule")}`;
  }
}

export function ruleEntry(app: App, row: number): Entry | null {
  const rules = app.model.table("family_rules");
  const at = (app.model.device!.rule[row] ?? 0) - 1;
  if (!rules || at < 0) return null;
  const place = clean(rules.str(at, "place"), 120);
  return ["decided by", app.link(ruleWords(rules, at),
                                 rowEvents(app, "family_rules", at)),
          place ? ` (${place})` : ""];
}

const kMeaning: Record<string, string> = {
  "exact-id": "the recording names the node that it goes back to",
  exact: "equal sequences, by position",
  fifo: "the same kernels in another order; by order inside a name",
  sure: "one partner on every optimal alignment",
  "gap-fifo": "the same name where one is missing",
  family: "the same kind of kernel in a gap",
  lcs: "one of several optimal alignments",
  scope: "between two partners: what they share",
  ambiguous: "a name that captured launches have, too",
  none: "nothing is known",
};

// Level of evidence, the captured launch, and what else would fit.
export function attribution(app: App, row: number): (Entry | null)[] {
  const table = app.model.table("graph_attribution");
  const at = (app.model.device!.graph[row] ?? 0) - 1;
  if (!table || at < 0) return [];
  const level = table.str(at, "level");
  const rows = rowEvents(app, "graph_attribution", at);
  const of = [table.str(at, "op"), table.str(at, "module")]
    .filter((text) => text !== "").map((text) => clean(text, 200)).join(" in ");
  const line = clean(table.str(at, "line"), 200);
  const file = clean(table.str(at, "capture").replace(/^.*\//, ""), 100);
  const launch = table.at(at, "launch");
  const others = table.num(at, "alternatives");
  const ops = clean(table.str(at, "other_ops"), 400);
  return [
    ["replayed", app.link(`${clean(level, 20)}: ${table.str(at, "confidence")}`,
                          rows), `, ${kMeaning[level] ?? ""}`],
    of || line ? ["captured in", [of, line].filter((t) => t !== "")
      .join(", line ")] : null,
    launch === null ? null : ["captured as", `launch ${String(launch)} of ` +
      `graph ${table.str(at, "segment")}` + (file ? ` in ${file}` : "")],
    ops || others > 1 ? ["alternatives", (others > 1
      ? `${count(others)} launches fit equally well` : "by name alone") +
      (ops ? `: ${ops}` : "")] : null,
  ];
}
