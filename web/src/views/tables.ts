// SPDX-License-Identifier: Apache-2.0
//
// Every table of the file, as the engine made it: where a sentence of another
// view points to its rows.

import type { App, View } from "../ui/app";
import { h } from "../ui/dom";
import { clean } from "../ui/format";
import { drawNotes, drawVerdicts } from "../ui/notes";
import { drawRows } from "../ui/rows";

function chosen(app: App): string {
  const wanted = app.option("tables.name");
  return app.model.hasTable(wanted) ? wanted
    : app.model.manifest.tables.find((t) => t.rows > 0)?.name ?? "";
}

export const tablesView: View = {
  id: "tables",
  title: "Tables",
  filtered: false,
  missing: (model) => model.manifest.tables.some((t) => t.rows > 0) ? null
    : "The report holds no rows.",
  needs: (model) => {
    // The chosen table is known by the address only.
    const name = /(?:^|&)o\.tables\.name=([a-z0-9_]+)/
      .exec(location.hash.slice(1))?.[1] ?? "";
    return [model.hasTable(name) ? name
      : model.manifest.tables.find((t) => t.rows > 0)?.name ?? "", "device",
      "host"];
  },
  draw(app, root) {
    // Where no other view shows the sentences of the command.
    const { command, notes } = app.model.manifest;
    if (!/^(report|diff|ranks|graph (census|candidates|pipeline|review))$/.test(command)) {
      root.append(...drawVerdicts(app));
      const rest = notes.filter((note) => note.severity !== "verdict");
      if (rest.length > 0) root.append(drawNotes(app, rest));
    }
    const name = chosen(app);
    const table = app.model.table(name);
    const select = h("select", { "aria-label": "Table", "data-k": "tables.name",
      change: () => app.go({ options: { ...app.state.options,
        "tables.name": select.value, "tables.where": "", "tables.sort": "" } }),
    });
    for (const info of app.model.manifest.tables) {
      if (info.rows > 0)
        select.append(h("option", { value: info.name },
                        `${info.name} (${info.rows})`));
    }
    select.value = name;
    const all = app.option("tables.all") === "1";
    const where = /^([a-z0-9_]+)=(.*)$/s.exec(app.option("tables.where"));
    root.append(h("div", { class: "tools" }, select,
      app.button("All columns", () =>
        app.go(app.withOption("tables.all", all ? "" : "1"), true),
        { "aria-pressed": String(all), "data-k": "tables.all" }),
      h("span", { class: "muted" }, table?.info.doc ?? "")));
    if (!table) return;
    let rows: number[] | undefined;
    if (where && table.has(where[1]!)) {
      rows = [];
      for (let row = 0; row < table.rows; ++row) {
        if (matches(table.str(row, where[1]!), table.info.columns[
            table.find(where[1]!)]!.type, where[2]!))
          rows.push(row);
      }
      root.append(h("p", {}, `Rows with ${where[1]} = ${clean(where[2]!)}. `,
        app.link("Show all rows", app.withOption("tables.where", ""))));
    }
    root.append(drawRows(app, table, { id: "tables", rows, all }));
  },
};

// Times stand in links as files show them: microseconds with three decimals.
function matches(value: string, type: string, wanted: string): boolean {
  if (value === wanted) return true;
  return type === "time" && value !== "" &&
    Number(value) === Math.round(Number(wanted) * 1000);
}
