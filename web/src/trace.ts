// SPDX-License-Identifier: Apache-2.0
//
// The program of pages about traces: reports, comparisons, ranks, tables.

import { gapsOf, longestGaps } from "./data/gpus";
import { idleBefore, stackTree, threadsOf, type Frame } from
  "./data/hoststacks";
import { compareSteps } from "./data/steps";
import { buildLanePyramid } from "./draw/scene";
import { run } from "./main";
import { diffView } from "./views/diff";
import { healthView } from "./views/health";
import { hostView } from "./views/host";
import { kernelsView } from "./views/kernels";
import { layersView } from "./views/layers";
import { makeTree, modulesView } from "./views/modules";
import { opsView } from "./views/ops";
import { overviewView } from "./views/overview";
import { ranksView } from "./views/ranks";
import { rooflineView } from "./views/roofline";
import { stepsView } from "./views/steps";
import { tablesView } from "./views/tables";
import { counterPlace, drawnTracks, frames, stripShares, timelineView, trackLeft, trackTop }
  from "./views/timeline";

run({
  views: [overviewView, timelineView, stepsView, layersView, modulesView, opsView,
          rooflineView, kernelsView, hostView, ranksView, diffView, healthView,
          tablesView],
  elsewhere: [
    { title: "Fusions", reason: "No graph dump; lamina graph census DUMPS " +
      "--format html shows fusions." },
    { title: "Graph", reason: "No graph of a layer; lamina graph layer DUMP " +
      "-n 5 --render html shows one." }],
  forTests: (app) => ({
    pyramid: (lane: number) => buildLanePyramid(app, lane),
    trackTop: (uid: number) => trackTop(uid),
    trackLeft: (uid: number) => trackLeft(uid), strip: () => [...stripShares],
    gaps: () => longestGaps(app.model).map(({ gpu, at }) => {
      const gaps = gapsOf(app.model, gpu);
      return { start: gaps.start[at], dur: gaps.dur[at],
               next: app.model.device!.uid[gaps.next[at]!] };
    }),
    tracks: () => drawnTracks(),
    counterPlace: (key: string, t: number) => counterPlace(key, t),
    moduleTree: (merge: boolean) => makeTree(app, merge),
    timelineFrames: frames,
    hostTree: (thread: number, idle: boolean) => {
      const cum = idleBefore(app.model);
      const flat = (at: Frame): unknown => ({ name: at.name < 0 ? ""
        : app.model.text(at.name), time: at.time, self: at.self,
        calls: at.calls, children: [...at.children.values()].map(flat) });
      return flat(stackTree(app.model, threadsOf(app.model)[thread]!, idle
        ? (from, to) => cum(to) - cum(from) : (from, to) => to - from));
    },
    compareSteps: (a: number, b: number) =>
      compareSteps(app.model, [a, b]).map(({ kind, name, op, ns, count }) =>
        ({ kind, name, op, ns, count })),
  }),
});
