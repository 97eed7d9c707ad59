// SPDX-License-Identifier: Apache-2.0
//
// The program of pages about graph dumps. It alone holds what lays graphs out.

import { layoutTimes } from "./draw/dagplace";
import { run } from "./main";
import { fusionsView } from "./views/fusions";
import { graphView } from "./views/graph";
import { healthView } from "./views/health";
import { tablesView } from "./views/tables";

run({
  views: [fusionsView, graphView, healthView, tablesView],
  elsewhere: [],
  forTests: () => ({ layouts: layoutTimes }),
});
