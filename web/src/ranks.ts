// SPDX-License-Identifier: Apache-2.0
//
// The program of pages about all ranks of a job.

import { forTests } from "./eventtests";
import { run } from "./main";
import { healthView } from "./views/health";
import { hostView } from "./views/host";
import { kernelsView } from "./views/kernels";
import { layersView } from "./views/layers";
import { modulesView } from "./views/modules";
import { opsView } from "./views/ops";
import { ranksView } from "./views/ranks";
import { rooflineView } from "./views/roofline";
import { stepsView } from "./views/steps";
import { tablesView } from "./views/tables";
import { timelineView } from "./views/timeline";

run({
  views: [timelineView, stepsView, layersView, modulesView, opsView,
          rooflineView, kernelsView, hostView, ranksView, healthView,
          tablesView],
  elsewhere: [
    { title: "Overview", reason: "Only a report on a trace has an overview." },
    { title: "Diff", reason: "One job; lamina diff A B --format html compares " +
      "two traces." }],
  forTests,
});
