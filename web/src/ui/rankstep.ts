// SPDX-License-Identifier: Apache-2.0
//
// One step on all ranks: where the time of each went, and its events.

import type { Table } from "../data/model";
import type { App } from "./app";
import { countsEvents, rowEvents } from "./compare";
import { h } from "./dom";
import { time } from "./format";
import { drawTable, type Col } from "./table";

const kTimes: [string, string][] = [["device_us", "on the device"],
  ["busy_us", "busy"], ["compute_us", "computes"], ["comm_us", "communicates"],
  ["exposed_comm_us", "of it exposed"], ["wait_us", "waits"]];

// A number of the table that leads to the events of its row.
export function stepLink(app: App, table: Table, row: number,
                         column: string): Node | string {
  const text = column.endsWith("_us") ? time(table.num(row, column))
    : table.str(row, column) || "outside of all";
  return countsEvents(app, "rank_steps")
    ? app.link(text, rowEvents(app, "rank_steps", row)) : text;
}

export function drawStep(app: App, step: string): HTMLElement | null {
  const table = app.model.table("rank_steps");
  const rows: number[] = [];
  for (let row = 0; table && row < table.rows; ++row)
    if (table.str(row, "step") === step) rows.push(row);
  if (!table || rows.length === 0) return null;
  const columns = kTimes.map(([name, title]): Col<number> => ({
    key: name.replace(/_/g, ""), title, numeric: true,
    value: (row) => table.num(row, name),
    text: (row) => time(table.num(row, name)),
    cell: (row) => stepLink(app, table, row, name) }));
  return h("section", {}, h("h2", {}, `Step ${step} on all ranks`),
    drawTable<number>(app, { id: "rankstep", rows, sort: "",
      caption: "The step on each rank", columns: [
        { key: "rank", title: "rank", value: (row) => table.num(row, "rank"),
          text: (row) => table.str(row, "rank"),
          cell: (row) => stepLink(app, table, row, "rank") }, ...columns] }));
}
