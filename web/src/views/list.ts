// SPDX-License-Identifier: Apache-2.0
//
// All views in the order of their tabs.

import type { View } from "../ui/app";
import { healthView } from "./health";
import { kernelsView } from "./kernels";
import { opsView } from "./ops";
import { overviewView } from "./overview";
import { tablesView } from "./tables";
import { timelineView } from "./timeline";

export const kViews: View[] = [
  overviewView, timelineView, opsView, kernelsView, healthView, tablesView,
];
