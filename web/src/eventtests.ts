// SPDX-License-Identifier: Apache-2.0
//
// What tests read of pages with events.

import { gapsOf, longestGaps } from "./data/gpus";
import { idleBefore, stackTree, threadsOf, type Frame } from
  "./data/hoststacks";
import { compareSteps } from "./data/steps";
import { buildLanePyramid } from "./draw/scene";
import type { App } from "./ui/app";
import { makeTree } from "./views/modules";
import { counterPlace, drawnTracks, frames, stripShares, trackLeft, trackTop }
  from "./views/timeline";

export function forTests(app: App): object {
  return {
    lit: () => app.lit,
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
  };
}
