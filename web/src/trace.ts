// SPDX-License-Identifier: Apache-2.0
//
// The program of pages about traces: reports, comparisons, tables.

import { forTests } from "./eventtests";
import { run } from "./main";
import { diffView } from "./views/diff";
import { healthView } from "./views/health";
import { hostView } from "./views/host";
import { kernelsView } from "./views/kernels";
import { layersView } from "./views/layers";
import { modulesView } from "./views/modules";
import { opsView } from "./views/ops";
import { overviewView } from "./views/overview";
import { rooflineView } from "./views/roofline";
import { runsView } from "./views/runs";
import { stepsView } from "./views/steps";
import { tablesView } from "./views/tables";
import { timelineView } from "./views/timeline";

run({
  views: [overviewView, timelineView, stepsView, layersView, modulesView, opsView,
          rooflineView, kernelsView, hostView, runsView, diffView, healthView, tablesView],
  elsewhere: [
    { title: "Ranks", reason: "One rank; lamina ranks DIR --format html " +
      "compares all ranks of a job." },
    { title: "Fusions", reason: "No graph dump; lamina graph census DUMPS " +
      "--format html shows fusions." },
    { title: "Graph", reason: "No graph of a layer; lamina graph layer DUMP " +
      "-n 5 --render html shows one." }],
  forTests,
});
