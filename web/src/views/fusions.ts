// SPDX-License-Identifier: Apache-2.0
//
// Known fusions per dump, places that nearly match and why, and what else
// could be fused; from each place to the graph of its layer.

import { allMatches, candidatePlaces, candidates, kFusionTables, logCounts,
         nearMisses, ruleCounts, ruleInfos, type Candidate, type NearMiss,
         type RuleCount, type Spot } from "../data/fusions";
import { kGraphTables } from "../data/layergraph";
import type { App, View } from "../ui/app";
import { h } from "../ui/dom";
import { clean, count, heading, kernelName, time } from "../ui/format";
import { graphLinks, graphPatch } from "../ui/graphlink";
import { drawNotes } from "../ui/notes";
import { drawRows } from "../ui/rows";
import { drawTable, type Col } from "../ui/table";

const kReasons: Record<string, string> = {
  extra_user: "a value inside the pattern is used outside as well",
  operand_order: "two operands are swapped",
  strategy: "another string than configured",
  literal: "another constant", dtype: "another element type",
  shape: "a condition on shapes fails",
  extra_cast: "a conversion stands between",
  missing_cast: "a conversion is not there",
  arity: "another number of operands", crosses_layer:
  "the nodes use weights of two layers", other_op:
  "one op of the pattern is another one", metadata_loss:
  "a node without shape that others know",
};

function shortFile(file: string): string {
  return /^(\d+)_/.exec(file)?.[1] ?? file.replace(/\.txt.*$/, "");
}

// --- rules by dumps ---

function cellOf(app: App, rule: string, file: string,
                found: RuleCount | undefined): HTMLElement {
  const { matches = 0, possible = 0, misses = 0 } = found ?? {};
  if (matches === 0 && misses === 0) return h("td", { class: "num muted" }, "");
  const words = `${matches} ${matches === 1 ? "match" : "matches"}` +
    (possible > 0 ? `, ${possible} possible` : "") +
    (misses > 0 ? `, ${misses} nearly` : "");
  const ran = shortRan(file, rule);
  return h("td", { class: "num" + (ran ? " ran" : "") },
    app.link(matches > 0 ? count(matches) : "0", { options: {
      ...app.state.options, "fusions.rule": rule, "fusions.file": file } },
      { title: clean(`${rule} in ${file}: ${words}`, 300),
        "aria-label": clean(`${rule} in ${file}: ${words}`, 300) }),
    misses > 0 ? h("span", { class: "more" }, ` +${count(misses)}`) : null);
}

// The dump that this transform wrote.
function shortRan(file: string, rule: string): boolean {
  return file.replace(/\.txt.*$/, "").endsWith("_" + rule);
}

function drawMatrix(app: App): HTMLElement[] {
  const { files, rules } = ruleCounts(app.model);
  if (rules.size === 0) return [];
  const infos = ruleInfos(app.model);
  const counted = logCounts(app.model);
  // Without a log every row of it is empty.
  const logs = [...counted.values()].some((one) => one.log !== "") ? counted
    : new Map<string, { log: string; agrees: string }>();
  const shown = [...rules].filter(([, byFile]) => [...byFile.values()].some(
    (one) => one.matches > 0 || one.misses > 0));
  const order = [...infos.keys()];
  shown.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  const head = h("tr", {}, h("th", { scope: "col", class: "wide" }, "rule"),
    ...files.map((file) => h("th", { scope: "col", class: "num",
      title: clean(file, 300) }, clean(shortFile(file), 24))),
    ...(logs.size > 0 ? [h("th", { scope: "col", class: "num" }, "log"),
                         h("th", { scope: "col" }, "agrees")] : []));
  const body = shown.map(([rule, byFile]) => h("tr",
    rule === app.option("fusions.rule") ? { "aria-current": "true" } : {},
    h("th", { scope: "row", class: "wide" }, app.link(clean(rule, 80),
      { options: { ...app.state.options, "fusions.rule": rule,
                   "fusions.file": "" } },
      { title: clean(infos.get(rule)?.title ?? "", 300) })),
    ...files.map((file) => cellOf(app, rule, file, byFile.get(file))),
    ...(logs.size > 0 ? [h("td", { class: "num" },
                           clean(logs.get(rule)?.log ?? "", 40)),
      h("td", { class: logs.get(rule)?.agrees === "no" ? "warn" : "" },
        clean(logs.get(rule)?.agrees ?? "", 10))] : [])));
  return [h("h2", {}, "Rules by dump"), h("p", { class: "muted" },
    "Matches of each rule in each dump; ", h("span", { class: "more" }, "+n"),
    " places that fail for one reason only. A frame marks the dump that the ",
    "transform of the rule wrote."),
    h("div", { class: "tablebox", tabindex: "0", role: "region",
               "aria-label": "Rules by dump", "data-k": "fusions.matrix" },
      h("table", { class: "matrix" }, h("caption", { class: "offscreen" },
        "Matches of each rule in each dump"), h("thead", {}, head),
        h("tbody", {}, ...body)))];
}

// --- a pattern beside its places ---

function graphColumn<Row extends Spot>(app: App): Col<Row> {
  return { key: "graph", title: "nodes", value: (row) => row.nodes.join(" "),
    cell: (row) => graphLinks(app, row.file, row.section, row.layer,
                              row.nodes) };
}

function spotColumns<Row extends Spot>(app: App, files: boolean): Col<Row>[] {
  return [
    ...(files ? [{ key: "file", title: "dump", value: (row: Row) => row.file,
                   text: (row: Row) => clean(shortFile(row.file), 24) }] : []),
    { key: "layer", title: "layer", value: (row) =>
      /^\d+$/.test(row.layer) ? Number(row.layer) : row.layer,
      text: (row) => clean(row.layer, 60) },
    { key: "last", title: "last node", wide: true, value: (row) =>
      clean(row.nodes.at(-1) ?? "", 100) },
    { key: "line", title: "line", numeric: true, value: (row) => row.line },
    graphColumn(app)];
}

function facts(entries: [string, string][]): HTMLElement {
  return h("dl", {}, ...entries.filter(([, text]) => text !== "")
    .flatMap(([name, text]) => [h("dt", {}, name),
                                h("dd", {}, clean(text, 2000))]));
}

function patternText(pattern: string): HTMLElement {
  return h("pre", { class: "pattern", tabindex: "0" }, ...pattern.trimEnd()
    .split("\n").slice(0, 200).flatMap((line, i) =>
      [...(i > 0 ? ["\n"] : []), clean(line, 400)]));
}

function drawRule(app: App): HTMLElement[] {
  const rule = app.option("fusions.rule");
  const info = ruleInfos(app.model).get(rule);
  if (!info) return [];
  const file = app.option("fusions.file");
  const inFile = (spot: Spot) => file === "" || spot.file === file;
  const places = allMatches(app.model).filter((one) => one.rule === rule &&
                                              inFile(one));
  const misses = nearMisses(app.model).filter((one) => one.rule === rule &&
                                              inFile(one));
  const columns: Col<typeof places[number]>[] = [
    ...spotColumns<typeof places[number]>(app, file === ""),
    { key: "sure", title: "match", value: (row) => row.possible ? "possible"
      : "sure" }];
  return [h("section", { class: "facts", "data-rule": rule },
    h("h2", {}, clean(rule, 100)), h("div", { class: "beside" },
      h("div", {}, info.pattern === "" ? h("p", {},
          "No pattern: the rule replaces a region of variable size.")
        : patternText(info.pattern),
        facts([["does", info.title], ["stage", info.stage],
          ["runs", info.state], ["conditions", info.guards],
          ["leaves behind", info.leaves],
          ["a dump does not show", info.limits]])),
      h("div", {}, drawTable(app, { id: "places", caption: "Matches of " +
        clean(rule, 80), rows: places, sort: "", columns,
        empty: file === "" ? "No matches." : "No matches in this dump." }),
        misses.length > 0 ? h("p", {}, `${count(misses.length)} more nearly ` +
          "match; they stand below.") : null)),
    h("div", { class: "tools" }, file !== "" ? app.link("All dumps",
      app.withOption("fusions.file", "")) : null,
      app.link("Close", { options: { ...app.state.options,
        "fusions.rule": "", "fusions.file": "" } })))];
}

// --- near misses ---

function drawMisses(app: App): HTMLElement[] {
  const rule = app.option("fusions.rule");
  const file = app.option("fusions.file");
  const all = nearMisses(app.model);
  if (all.length === 0) return [];
  const shown = all.filter((one) => (rule === "" || one.rule === rule) &&
                           (file === "" || one.file === file));
  const files = new Set(shown.map((one) => one.file)).size > 1;
  const groups = new Map<string, NearMiss[]>();
  for (const miss of shown)
    groups.set(miss.reason, [...groups.get(miss.reason) ?? [], miss]);
  const ordered = [...groups].sort(([a, x], [b, y]) => x.length - y.length ||
                                   (a < b ? -1 : 1));
  const columns: Col<NearMiss>[] = [
    { key: "rule", title: "rule", value: (row) => clean(row.rule, 80) },
    ...spotColumns<NearMiss>(app, files).filter((c) => c.key !== "last"),
    { key: "node", title: "node", value: (row) => clean(row.node, 100),
      cell: (row) => {
        const patch = graphPatch(app, row.file, row.section, row.layer,
                                 row.nodes);
        return patch ? app.link(clean(row.node, 100), patch)
          : clean(row.node, 100);
      } },
    { key: "why", title: "evidence", wide: true,
      value: (row) => clean(row.evidence, 300) }];
  return [h("h2", {}, "Near misses"), h("p", { class: "muted" },
    `${count(shown.length)} of ${count(all.length)} places that fail for one ` +
    "reason only, the rarest reason first."),
    ...ordered.map(([reason, rows], i) => h("details", {
      open: ordered.length <= 4 || rows.length <= 40, "data-reason": reason },
      h("summary", {}, h("b", {}, `${clean(heading(reason), 40)} ` +
        `(${count(rows.length)})`), ` ${kReasons[reason] ?? ""}`),
      drawTable(app, { id: "miss" + String.fromCharCode(97 + i % 26),
        caption: `Near misses: ${clean(reason, 40)}`, rows, sort: "",
        columns })))];
}

// --- candidates ---

// "sure" and "possible" are about the match, "estimate" and "bound" about
// the time.
function certainty(one: Candidate): string {
  return `${one.match || "sure"}, ${one.savingNs === null ? "nothing claimed"
    : one.claim}`;
}

function drawCandidates(app: App): HTMLElement[] {
  const rows = candidates(app.model);
  if (rows.length === 0) return [];
  const most = Math.max(1, ...rows.map((row) => row.savingNs ?? 0));
  const chosen = rows.find((row) => row.name === app.option("fusions.what"));
  const bar = (row: Candidate) => {
    const meter = h("span", { class: "meter", "aria-hidden": "true" });
    meter.style.width = 60 * (row.savingNs ?? 0) / most + "px";
    return h("span", {}, row.savingNs === null ? "" : time(row.savingNs),
             meter);
  };
  return [h("h2", {}, "Candidates"), drawTable<Candidate>(app, {
    id: "wish", caption: "What could be fused", rows, sort: "", columns: [
      { key: "name", title: "candidate", wide: true,
        value: (row) => clean(row.name, 80),
        cell: (row) => app.link(clean(row.name, 80),
                                app.withOption("fusions.what", row.name)) },
      { key: "many", title: "places", numeric: true,
        value: (row) => row.occurrences },
      { key: "saves", title: "saves at most", numeric: true,
        value: (row) => row.savingNs, cell: bar,
        text: (row) => row.savingNs === null ? "" : time(row.savingNs) },
      { key: "share", title: "% of step", numeric: true,
        value: (row) => row.percent,
        text: (row) => row.percent === null ? "" : row.percent.toFixed(1) },
      { key: "sure", title: "how sure", value: certainty },
      { key: "advice", title: "recommendation",
        value: (row) => clean(row.recommendation, 60) },
      { key: "kernel", title: "existing op",
        value: (row) => clean(row.kernel, 80),
        cell: (row) => kernelName(row.kernel, 80) },
    ] }), ...(chosen ? [drawCandidate(app, chosen)] : [])];
}

function drawCandidate(app: App, one: Candidate): HTMLElement {
  const places = candidatePlaces(app.model, one.name);
  type Row = typeof places[number];
  return h("section", { class: "facts", "data-candidate": one.name },
    h("h2", {}, clean(one.name, 100)), h("div", { class: "beside" },
      h("div", {}, patternText(one.pattern), facts([["how sure",
        certainty(one)], ["for it", one.for], ["against it", one.against],
        ["risks", one.risks]])),
      drawTable<Row>(app, { id: "spots", caption: "Places of " +
        clean(one.name, 80), rows: places, sort: "", columns: [
          ...spotColumns<Row>(app, false),
          ...(places.some((row) => row.measuredNs !== null) ? [{ key: "took",
            title: "measured", numeric: true,
            value: (row: Row) => row.measuredNs,
            text: (row: Row) => row.measuredNs === null ? ""
              : time(row.measuredNs) }] : [])] })),
    h("div", { class: "tools" }, app.link("Close",
      app.withOption("fusions.what", ""))));
}

export const fusionsView: View = {
  id: "fusions",
  title: "Fusions",
  filtered: false,
  missing: (model) => ["census_rules", "near_misses", "candidates", "pipeline",
    "review"].some((name) => model.hasTable(name)) ? null
    : "No fusions were looked for.",
  needs: () => [...kFusionTables, ...kGraphTables],
  draw(app, root) {
    const { notes } = app.model.manifest;
    if (notes.length > 0) root.append(drawNotes(app, notes));
    root.append(...drawCandidates(app), ...drawMatrix(app), ...drawRule(app),
                ...drawMisses(app));
    for (const name of ["review", "pipeline"]) {
      const table = app.model.table(name);
      if (!table) continue;
      root.append(h("h2", {}, heading(name).replace(/^./, (c) =>
        c.toUpperCase())), drawRows(app, table, { id: name }));
    }
  },
};
