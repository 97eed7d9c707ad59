// SPDX-License-Identifier: Apache-2.0
//
// What the engine says of fusions: rules counted per dump, matches, places
// that nearly match, candidates. Rows of its tables, nothing computed anew.

import type { Model, Table } from "./model";

export const kFusionTables = ["census_rules", "census_stages", "near_misses",
  "matches", "fusion_rules", "candidates", "candidate_places", "pipeline",
  "review"];

// Where nodes are in a dump.
export interface Spot {
  file: string;
  section: string;
  layer: string;
  nodes: string[];
  line: number | null;
}

export interface RuleInfo {
  rule: string;
  stage: string;
  title: string;
  state: string;      // whether it runs unasked
  guards: string;
  limits: string;
  pattern: string;
  leaves: string;
}

// A rule in the graphs of one dump.
export interface RuleCount {
  matches: number;
  possible: number;
  misses: number;
  already: number;
  perLayer: string;
}

export interface Match extends Spot {
  rule: string;
  possible: boolean;
}

export interface NearMiss extends Spot {
  rule: string;       // empty: a node without metadata
  reason: string;
  node: string;
  evidence: string;
}

export interface Candidate {
  row: number;        // of the table
  name: string;
  rule: string;
  occurrences: number;
  savingNs: number | null;
  percent: number | null;
  claim: string;      // estimate or bound
  match: string;      // sure or possible
  kernel: string;
  recommendation: string;
  pattern: string;
  for: string;
  against: string;
  risks: string;
}

export interface CandidatePlace extends Spot {
  candidate: string;
  measuredNs: number | null;
}

function rowsOf<T>(model: Model, name: string, read: (table: Table,
                   row: number) => T): T[] {
  const table = model.table(name);
  return Array.from({ length: table?.rows ?? 0 }, (_, row) =>
    read(table!, row));
}

function whole(table: Table, row: number, column: string): number | null {
  const value = table.at(row, column);
  return value === null ? null : Number(value);
}

function split(nodes: string): string[] {
  return nodes.split(" ").filter((id) => id !== "");
}

export function ruleInfos(model: Model): Map<string, RuleInfo> {
  return new Map(rowsOf(model, "fusion_rules", (t, r) => ({
    rule: t.str(r, "rule"), stage: t.str(r, "stage"),
    title: t.str(r, "title"), state: t.str(r, "default"),
    guards: t.str(r, "guards"), limits: t.str(r, "limits"),
    pattern: t.str(r, "pattern"), leaves: t.str(r, "leaves") }))
    .map((info) => [info.rule, info]));
}

// Counts by rule, then by dump; dumps in order.
export function ruleCounts(model: Model):
    { files: string[]; rules: Map<string, Map<string, RuleCount>> } {
  const files = new Set<string>(rowsOf(model, "graph_files", (t, r) =>
    t.str(r, "file")));
  const rules = new Map<string, Map<string, RuleCount>>();
  rowsOf(model, "census_rules", (t, r) => {
    const file = t.str(r, "file");
    files.add(file);
    const rule = t.str(r, "rule");
    if (!rules.has(rule)) rules.set(rule, new Map());
    const sum = rules.get(rule)!.get(file) ?? { matches: 0, possible: 0,
      misses: 0, already: 0, perLayer: "" };
    const layers = t.str(r, "per_layer");
    rules.get(rule)!.set(file, {
      matches: sum.matches + t.num(r, "matches"),
      possible: sum.possible + t.num(r, "possible"),
      misses: sum.misses + t.num(r, "near_misses"),
      already: sum.already + t.num(r, "already"),
      perLayer: [sum.perLayer, layers].filter((s) => s !== "").join("; ") });
  });
  return { files: [...files], rules };
}

// What the log of the run counts, by rule.
export function logCounts(model: Model):
    Map<string, { log: string; agrees: string }> {
  return new Map(rowsOf(model, "census_stages", (t, r) =>
    [t.str(r, "rule"), { log: t.str(r, "log"), agrees: t.str(r, "agrees") }]));
}

export function allMatches(model: Model): Match[] {
  return rowsOf(model, "matches", (t, r) => ({ file: t.str(r, "file"),
    section: t.str(r, "section"), rule: t.str(r, "rule"),
    layer: t.str(r, "layer"), possible: t.num(r, "possible") === 1,
    nodes: split(t.str(r, "nodes")), line: whole(t, r, "line") }));
}

export function nearMisses(model: Model): NearMiss[] {
  return rowsOf(model, "near_misses", (t, r) => {
    const node = t.str(r, "node");
    const nodes = [node, t.str(r, "anchor"), t.str(r, "user")];
    return { file: t.str(r, "file"), section: t.str(r, "section"),
      rule: t.str(r, "rule"), layer: t.str(r, "layer"), node,
      nodes: [...new Set(nodes.filter((id) => id !== "" && id !== "output"))],
      reason: t.str(r, "class"), evidence: t.str(r, "evidence"),
      line: whole(t, r, "line") };
  });
}

// The most saved time first; what claims nothing last.
export function candidates(model: Model): Candidate[] {
  return rowsOf(model, "candidates", (t, r) => ({ row: r,
    name: t.str(r, "candidate"), rule: t.str(r, "rule"),
    occurrences: t.num(r, "occurrences"), savingNs: whole(t, r, "saving_us"),
    percent: whole(t, r, "percent_of_step"), claim: t.str(r, "claim"),
    match: t.str(r, "match"), kernel: t.str(r, "kernel"),
    recommendation: t.str(r, "recommendation"), pattern: t.str(r, "pattern"),
    for: t.str(r, "strengths"), against: t.str(r, "weaknesses"),
    risks: t.str(r, "risks") }))
    .sort((a, b) => (b.savingNs ?? -1) - (a.savingNs ?? -1) || a.row - b.row);
}

// The page of candidates holds one graph, so the places need not name it.
export function candidatePlaces(model: Model, name: string): CandidatePlace[] {
  const files = model.table("graph_files");
  const file = files && files.rows > 0 ? files.str(0, "file") : "";
  const section = files && files.rows > 0 ? files.str(0, "section") : "";
  return rowsOf(model, "candidate_places", (t, r) => ({ file, section,
    candidate: t.str(r, "candidate"), layer: t.str(r, "layer"),
    nodes: split(t.str(r, "nodes")), line: whole(t, r, "line"),
    measuredNs: whole(t, r, "measured_us") }))
    .filter((place) => place.candidate === name);
}
