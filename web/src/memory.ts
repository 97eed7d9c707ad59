// SPDX-License-Identifier: Apache-2.0
//
// The program of pages about memory snapshots.

import { run } from "./main";
import { memoryView, shownFrames } from "./views/memory";
import { segmentsView } from "./views/segments";
import { stacksView } from "./views/stacks";
import { tablesView } from "./views/tables";
import { healthView } from "./views/health";

run({
  views: [memoryView, segmentsView, stacksView, tablesView, healthView],
  elsewhere: [
    { title: "Timeline", reason: "A snapshot holds no kernels; lamina report " +
      "TRACE --format html shows those of a trace." }],
  forTests: () => ({ memoryFrames: shownFrames }),
});
