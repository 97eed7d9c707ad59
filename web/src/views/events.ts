// SPDX-License-Identifier: Apache-2.0
//
// The events of the allocator in their order, each with its stacks: the one
// that led to the moment that is looked at is open, and the arrow keys go from
// one to the next, in all views of memory.

import { kBlocks, type Series } from "../data/memory";
import { eventsOf, type EventList } from "../data/memoryevents";
import { firstStartingAt } from "../data/tracks";
import type { App, Patch, View } from "../ui/app";
import { h } from "../ui/dom";
import { bytes, clean, count, time } from "../ui/format";
import { details, framesOf, legend, missingMemory, originOf, shownState, tools,
         type Shown } from "../ui/memorystate";
import { drawTable } from "../ui/table";

interface Listed {
  query: string;
  series: Series;
  rows: number[];
}
let listed: Listed[] = [];

// What is found stays until something else is asked for: a key must not look
// through ten million events again.
function rowsOf(app: App, shown: Shown): number[] {
  const text = app.option("mem.q");
  const only = app.option("mem.only");
  const query = `${text}\n${shown.by}\n${only}`;
  let known = listed.find((l) => l.series === shown.series &&
                          l.query === query);
  if (!known) {
    known = { query, series: shown.series,
      rows: eventsOf(shown.series).matching(text, shown.mask, only !== "") };
    listed = [...listed.filter((l) => l.series !== shown.series), known];
  }
  return known.rows;
}

function goTo(app: App, shown: Shown, part: number, event: number): Patch {
  const i = eventsOf(shown.series).allocation(event);
  return { options: { ...app.state.options,
    "mem.at": String(event + 1 - originOf(shownState(app)
      .map((s) => s.series), shown.series)),
    "mem.pick": i < 0 ? "" : `${part}.${i}` } };
}

function about(app: App, shown: Shown, list: EventList, e: number): Node {
  const i = list.allocation(e);
  const note = list.note(e);
  const noted = note !== "" && h("p", {}, "Noted: " + clean(note, 300));
  if (i >= 0)
    return h("div", {}, noted, details(app, { ...shown, pick: i }));
  const stack = list.stack(e);
  return h("div", {}, noted, h("p", {}, `${list.name(e)}, ` +
    `${count(list.bytes(e))} bytes` + (list.address(e) === "" ? ""
      : ` at ${list.address(e)}`)),
    stack > 0 && framesOf(shown.series, stack, "Stack"));
}

function eventTable(app: App, shown: Shown, part: number): HTMLElement {
  const { series, at } = shown;
  const list = eventsOf(series);
  const rows = rowsOf(app, shown);
  const current = firstStartingAt(rows, at - 1, 0, rows.length);
  const line = (e: number) => series.text("line", list.stack(e));
  const timed = series.times.length > 0;
  const table = drawTable<number>(app, {
    hint: "Click an event, or go up and down with the arrow keys.",
    id: "memevents" + part, sort: "", rows, current,
    caption: `Events of ${series.info.name}`,
    empty: "No event matches.",
    detail: (e) => e === at - 1 ? about(app, shown, list, e) : null,
    columns: [
      { key: "event", title: "Event", numeric: true, value: (e) => e,
        text: (e) => count(e),
        cell: (e) => h("span", { "data-event": e }, count(e)) },
      ...(timed ? [{ key: "time", title: "Time", numeric: true,
        value: (e: number) => series.time(e + 1),
        text: (e: number) => time(series.time(e + 1) * 1000) }] : []),
      { key: "action", title: "Action", value: (e) => list.name(e),
        cell: (e) => list.failed(e) ? h("b", {}, list.name(e))
          : list.name(e) },
      { key: "bytes", title: "Bytes", numeric: true,
        value: (e) => list.bytes(e), text: (e) => bytes(list.bytes(e)) },
      { key: "address", title: "Address", value: (e) => list.address(e) },
      { key: "line", title: "Line", wide: true, value: line,
        cell: (e) => clean(line(e), 100) },
      { key: "op", title: "Op",
        value: (e) => series.text("op", list.stack(e)) },
      { key: "category", title: "Category", value: (e) => {
        const i = list.allocation(e);
        return i < 0 ? null : series.categoryName(series.category[i]!);
      } },
      { key: "note", title: "Noted", hidden: series.tags.event!.length === 0,
        value: (e) => list.note(e), cell: (e) => clean(list.note(e), 60) },
    ] });
  table.classList.add("events");
  table.addEventListener("click", (event) => {
    const e = (event.target as Element).closest("tr")
      ?.querySelector("[data-event]")?.getAttribute("data-event");
    if (e) app.go(goTo(app, shown, part, Number(e)));
  });
  return table;
}

export const eventsView: View = {
  id: "events",
  title: "Events",
  filtered: false,
  missing: missingMemory,
  needs: () => kBlocks,
  draw(app, root) {
    root.append(tools(app, []));
    for (const [k, one] of shownState(app).entries()) {
      const rows = rowsOf(app, one);
      root.append(h("h2", {}, `${one.series.info.name}: ` +
        (rows.length === one.series.moments ? `${count(rows.length)} events`
          : `${count(rows.length)} of ${count(one.series.moments)} events`)),
        legend(app, one), eventTable(app, one, k));
    }
  },
  key(app, event) {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[
      event.key];
    const [shown] = shownState(app);
    if (step === undefined || !shown) return false;
    const rows = rowsOf(app, shown);
    const now = shown.at - 1;
    const here = firstStartingAt(rows, now, 0, rows.length);
    // Between two rows the next one is that behind.
    const next = rows[step < 0 ? here - 1 : rows[here] === now ? here + 1
      : here];
    if (next !== undefined) app.go(goTo(app, shown, 0, next), true);
    return true;
  },
};
