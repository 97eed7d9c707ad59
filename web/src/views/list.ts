// SPDX-License-Identifier: Apache-2.0
//
// All views in the order of their tabs.

import type { View } from "../ui/app";
import { diffView } from "./diff";
import { fusionsView } from "./fusions";
import { graphView } from "./graph";
import { healthView } from "./health";
import { kernelsView } from "./kernels";
import { layersView } from "./layers";
import { modulesView } from "./modules";
import { opsView } from "./ops";
import { overviewView } from "./overview";
import { ranksView } from "./ranks";
import { rooflineView } from "./roofline";
import { tablesView } from "./tables";
import { timelineView } from "./timeline";

export const kViews: View[] = [
  overviewView, timelineView, layersView, modulesView, opsView,
  rooflineView, kernelsView, ranksView, diffView, fusionsView,
  graphView, healthView, tablesView,
];
