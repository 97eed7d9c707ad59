// SPDX-License-Identifier: Apache-2.0
//
// The program of pages about memory snapshots.

import { openSeries, seriesOf, type By } from "./data/memory";
import { run } from "./main";
import { eventsOf } from "./data/memoryevents";
import { eventsView } from "./views/events";
import { memoryView, shownFrames } from "./views/memory";
import { segmentsView } from "./views/segments";
import { stacksView } from "./views/stacks";
import { tablesView } from "./views/tables";
import { healthView } from "./views/health";

run({
  views: [memoryView, segmentsView, stacksView, eventsView,
          tablesView, healthView],
  elsewhere: [
    { title: "Timeline", reason: "A snapshot holds no kernels; lamina report " +
      "TRACE --format html shows those of a trace." }],
  forTests: (app) => ({
    memoryFrames: shownFrames,
    memoryEvents: (part: number) => {
      const list = eventsOf(openSeries(app.model, seriesOf(app.model)[part]!));
      return Array.from(list.action, (_, e) => [list.name(e), list.bytes(e),
                                                list.address(e)]);
    },
    memoryAt: (part: number, moment: number, by: By) => {
      const series = openSeries(app.model, seriesOf(app.model)[part]!);
      const sums: Record<string, number> = {};
      let allocated = 0;
      for (const i of series.aliveAt(moment, null)) {
        const key = series.keyOf(i, by);
        sums[key] = (sums[key] ?? 0) + series.bytes[i]!;
        if (series.freed[i]! > moment) allocated += series.bytes[i]!;
      }
      return { active: series.active[moment], allocated,
               reserved: series.reserved(moment), sums };
    },
  }),
});
