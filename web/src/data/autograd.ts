// SPDX-License-Identifier: Apache-2.0
//
// Forward ops and the backward ops that belong to them, where the trace links
// them.

import type { Model } from "./model";

export interface Twin {
  own: number;       // rows of host events
  other: number;
  isForward: boolean;  // `own` is the forward op
}

// Both ends of a row's pair, of the row itself or of the nearest op around it
// on its thread.
export function twinOf(model: Model, row: number): Twin | null {
  const { host, hostTracks } = model;
  const pairs = model.columns("autograd");
  const forward = pairs?.get("forward");
  const backward = pairs?.get("backward");
  const track = hostTracks.find((t) => row >= t.begin && row < t.end);
  if (!host || !forward || !backward || !track) return null;
  const end = host.start[row]! + host.dur[row]!;
  for (let at = row; at >= track.begin; --at) {
    if (host.start[at]! + host.dur[at]! < end) continue;
    const f = forward.indexOf((at + 1) as never);
    if (f >= 0) return pair(model, at, backward[f]! - 1, true);
    const b = backward.indexOf((at + 1) as never);
    if (b >= 0) return pair(model, at, forward[b]! - 1, false);
  }
  return null;
}

function pair(model: Model, own: number, other: number, isForward: boolean):
    Twin | null {
  return other < model.host!.count ? { own, other, isForward } : null;
}
