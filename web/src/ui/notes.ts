// SPDX-License-Identifier: Apache-2.0
//
// Sentences of the engine with links to the rows and events that prove them.

import type { Evidence, Note } from "../data/manifest";
import type { App, Patch } from "./app";
import { h } from "./dom";
import { showEvent } from "./events";
import { clean, heading, time } from "./format";
import { hint } from "./paper";
import { prose } from "./prose";

const kClaims: Record<string, string> = {
  measured: "measured", bound: "above the bound", estimate: "estimate",
};
const kIds: Record<string, string> = {
  device_idle: "The device waits", exposed_copies: "Copies in the open",
  exposed_communication: "Communication in the open",
  above_roofline: "Above its roofline", short_kernels: "Short kernels",
};

// Where a piece of evidence leads: the view that shows such rows best.
export function evidencePatch(app: App, evidence: Evidence): Patch {
  const { table, column, value, events } = evidence;
  if (table === "gaps" && events.length > 0) {
    const gaps = app.model.table("gaps");
    const row = gaps?.rowWhere("uid", events[0]!) ?? -1;
    if (gaps && row >= 0) return gapPatch(app, row);
  }
  if (events.length > 0 && app.model.hasEvents) {
    return events.length === 1 ? showEvent(app, events[0]!)
      : { view: "timeline", chips: app.only("uid", ...events.map(String)) };
  }
  const ops = app.model.table("op_efficiency");
  if (table === "op_efficiency" && column === "op" && ops) {
    const rows = Array.from({ length: ops.rows }, (_, row) => row)
      .filter((row) => ops.str(row, "op") === value);
    return { view: "ops", chips: app.only("row",
      ...rows.map((row) => ops.str(row, "first_uid"))) };
  }
  if (table === "op_categories" && column === "category" && app.model.hasEvents)
    return { view: "kernels", chips: app.only("cat", value) };
  if (table === "trace_health" && !column) return { view: "health" };
  return app.rowsHref(table, column, value);
}

// The timeline with the gap in the middle, up to the event that ends it.
export function gapPatch(app: App, row: number): Patch {
  const gaps = app.model.table("gaps")!;

  const start = gaps.num(row, "start_us");
  const length = gaps.num(row, "dur_us");
  return { view: "timeline", selected: "gap." + gaps.str(row, "uid"),
           zoom: [Math.round(start - length * 0.1),
                  Math.round(start + length * 1.1 + 1000)] };
}

function evidenceLink(app: App, evidence: Evidence): HTMLElement {
  const { table, column, value, events } = evidence;
  const words = table === "gaps" && events.length > 0 ? "the longest gap"
    : table === "gpu_timeline" ? value.replace(/_/g, " ")
    : table === "op_categories" ? `kernels of ${clean(value, 40)}`
    : table === "op_efficiency" && column === "op" ? "show its shapes and events"
    : events.length > 0 && app.model.hasEvents
    ? events.length === 1 ? "show the event" : `show ${events.length} events`
    : column ? `${heading(table)}: ${clean(value, 60)}`
      : "table " + heading(table);
  return app.link(words, evidencePatch(app, evidence));
}

export function evidenceLinks(app: App, note: Note): Node[] {
  const parts: Node[] = [];
  for (const evidence of note.evidence) {
    if (!app.model.hasTable(evidence.table) && evidence.events.length === 0)
      continue;
    if (parts.length > 0) parts.push(document.createTextNode(", "));
    parts.push(evidenceLink(app, evidence));
  }
  return parts;
}

// The engine's answer in one sentence, large; what else it has to say below.
export function drawVerdicts(app: App): HTMLElement[] {
  return app.model.manifest.notes.filter((note) => note.severity === "verdict")
    .map((note, i) => {
      const [first, ...rest] = prose(app, note).split(/(?<=\.) /);
      const links = evidenceLinks(app, note);
      return h("p", { class: i === 0 ? "verdict" : "second" },
        h("b", {}, clean(first ?? "", 600)), " ", clean(rest.join(" "), 1200),
        links.length > 0 ? hint(h("br"), h("span", { class: "why" },
                                           "Rows behind it: ", ...links))
          : null);
    });
}

function sentence(text: string): string {
  // Names of ops keep their case.
  const isWord = /^[a-z]+ /.test(text);
  return clean(isWord ? text.charAt(0).toUpperCase() + text.slice(1) : text,
               2000);
}

// What a note is about: a finding has the title of its rule.
function title(app: App, note: Note): string {
  const findings = app.model.table("findings");
  const row = findings?.rowWhere("id", note.evidence[0]?.value ?? "") ?? -1;
  return findings && row >= 0 ? clean(findings.str(row, "finding"), 200)
    : kIds[note.id] ??
      heading(note.id).replace(/^./, (c) => c.toUpperCase());
}

export function drawNotes(app: App, notes: Note[]): HTMLElement {
  return h("div", { class: "notes" }, ...notes.map((note) => {
    const links = evidenceLinks(app, note);
    return h("div", { class: "item", "data-note": note.id },
      h("div", { class: "worth" }, ...(note.worth_ns === undefined
        ? [h("b", { class: note.severity === "warning" ? "warn" : "" },
             note.severity)]
        : [h("b", {}, time(note.worth_ns)),
           h("span", {}, kClaims[note.claim] ?? note.claim)])),
      h("div", {}, h("h3", {}, title(app, note)),
        h("p", {}, sentence(prose(app, note)), hint(" ", ...links))));
  }));
}
