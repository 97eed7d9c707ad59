// SPDX-License-Identifier: Apache-2.0
//
// The area of tracks and time that is marked in the timeline, in the address.

import { parseRange } from "../data/state";
import type { App, Patch } from "./app";

export interface Marked { from: number; to: number; keys: string[] }

export function markedArea(app: App): Marked | null {
  const range = parseRange(app.option("timeline.area"));
  return range && { from: range[0], to: range[1],
    keys: app.option("timeline.in").split(",").filter((key) => key !== "") };
}

// Nothing marked for null; no keys: all tracks.
export function areaPatch(app: App, area: Marked | null): Patch {
  return { options: { ...app.state.options, "timeline.area": area
    ? `${Math.round(area.from)}..${Math.round(area.to)}` : "",
    "timeline.in": area?.keys.join(",") ?? "" } };
}
