// SPDX-License-Identifier: Apache-2.0
//
// Trace health: may the numbers be believed, and what is not in the page.

import type { View } from "../ui/app";
import { h } from "../ui/dom";
import { count } from "../ui/format";
import { drawNotes } from "../ui/notes";
import { drawRows } from "../ui/rows";

export const healthView: View = {
  id: "health",
  title: "Trace health",
  filtered: false,
  missing: (model) => model.hasTable("trace_health") ||
    model.hasTable("memory_health") ? null : "The report has no checks.",
  needs: () => ["trace_health", "memory_health", "findings"],
  draw(app, root) {
    // Of a trace, or of a snapshot.
    const table = app.model.table("trace_health") ??
      app.model.table("memory_health");
    const status = table?.info.name === "trace_health" ? "status" : "level";
    const { trace, inputs, version, privacy } = app.model.manifest;
    const warnings = app.model.manifest.notes
      .filter((note) => note.severity === "warning");
    if (warnings.length > 0)
      root.append(h("h2", {}, "What to know before you believe the numbers"),
                  drawNotes(app, warnings));
    if (table) {
      root.append(h("h2", {}, "Checks"), h("div", { class: "wrap" },
        drawRows(app, table, { id: "health", all: true, cells: {
          [status]: (row) => {
            const text = table.str(row, status);
            return h("span", { class: /^(ok|info)$/.test(text) ? "" : "warn" }, text);
          } } })));
    }
    root.append(h("h2", {}, "Views without data"));
    root.append(app.missing.length === 0
      ? h("p", { class: "muted" }, "None: every view has something to show.")
      : h("ul", {}, ...app.missing.map(({ title, reason }) =>
        h("li", {}, h("b", {}, title), ": ", reason))));
    root.append(h("h2", {}, "This file"));
    root.append(h("p", {}, `Made by lamina ${version} from ` +
      `${inputs.join(", ") || "standard input"}` +
      (trace ? ` (${trace.format}, ${count(trace.events)} records).` : ".")));
    if (trace) {
      root.append(h("p", {}, trace.left_out
        ? `Left out of this page to keep it small: ${trace.left_out}. ` +
          "The tables count everything."
        : "Every device event, host op, runtime call, range and module " +
          "of the trace is in this page."));
      if (trace.no_launchers) {
        root.append(h("p", {}, "The table launchers, one row per call, is " +
          "too long for a page; lamina report --only launchers writes it."));
      }
    }
    root.append(h("p", { id: "privacy" }, privacy));
  },
};
