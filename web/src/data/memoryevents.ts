// SPDX-License-Identifier: Apache-2.0
//
// The events of a recorder one by one: what allocations tell of, and the rest
// from columns of its own. Event e leads from moment e to moment e + 1.

import { upper, type Series } from "./memory";

export const kActions = ["alloc", "free_requested", "free_completed",
  "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot",
  "oom", "other"];
const kUnknown = kActions.length - 1;
const kOom = 8;

export class EventList {
  readonly action: Uint8Array;
  // An allocation of the series, or of other actions a row of its events; -1.
  readonly item: Int32Array;
  readonly own: Uint8Array;  // 1: item is an allocation

  constructor(readonly series: Series) {
    const { moments, born, freed, dead, events } = series;
    this.action = new Uint8Array(moments).fill(kUnknown);
    this.item = new Int32Array(moments).fill(-1);
    this.own = new Uint8Array(moments);
    const tell = (moment: number, action: number, i: number) => {
      if (moment < 1 || moment > moments) return;
      this.action[moment - 1] = action;
      this.item[moment - 1] = i;
      this.own[moment - 1] = 1;
    };
    for (let i = 0; i < series.count; ++i) {
      tell(dead[i]!, 2, i);
      if (freed[i] !== dead[i]) tell(freed[i]!, 1, i);
    }
    // Last: one that takes the place of another ends that, too.
    for (let i = 0; i < series.count; ++i) tell(born[i]!, 0, i);
    const { event, action } = events;
    for (let row = 0; row < event!.length; ++row) {
      const e = event![row]!;
      if (e >= moments) continue;
      this.action[e] = Math.min(action![row]!, kUnknown);
      this.item[e] = row;
      this.own[e] = 0;
    }
  }

  allocation(e: number): number { return this.own[e] ? this.item[e]! : -1; }
  name(e: number): string { return kActions[this.action[e]!]!; }
  // As the recorder says: what was asked for, not the block.
  bytes(e: number): number {
    const i = this.item[e]!;
    if (i < 0) return 0;
    return this.own[e] ? this.series.bytes[i]! - this.series.spare[i]!
      : this.series.events.bytes![i]!;
  }
  // Of an allocation, and of its free that of the free where there is one.
  stack(e: number): number {
    const i = this.item[e]!;
    if (i < 0) return 0;
    if (!this.own[e]) return this.series.events.stack![i]!;
    return this.action[e] === 0 ? this.series.stack[i]!
      : this.series.freeStack[i]! || this.series.stack[i]!;
  }
  // In hexadecimal; empty: none.
  address(e: number): string {
    const i = this.item[e]!;
    const place = i < 0 ? -1 : this.own[e] ? this.series.place[i]!
      : this.series.events.place![i]! - 1;
    return place < 0 ? "" : this.series.addressOf(place);
  }
  // What the recorder noted beside it.
  note(e: number): string {
    const { event, text } = this.series.tags;
    const row = upper(event!, e) - 1;
    return row < 0 ? "" : this.series.model.text(text![row]!);
  }

  // Events whose frames, op, module or note have a text, whose bytes are at
  // least so many, or whose block holds an address. Of allocations `mask` says
  // which (Series.mask), which knows no notes; `group`: it has one group alone.
  matching(query: string, mask: Uint8Array | null, group: boolean): number[] {
    const out: number[] = [];
    const found = query === "" ? null : this.series.search(query);
    const { event } = this.series.tags;
    let next = 0;
    let noted = false;
    for (let e = 0; e < this.action.length; ++e) {
      if (next < event!.length && event![next]! <= e) {
        ++next;
        noted = found !== null && !group && found.text(this.note(e));
      }
      const i = this.item[e]!;
      if (!mask || noted || (this.own[e] ? mask[i] :
          found !== null && !group && this.bytes(e) >= found.least &&
          !found.placed && (found.frames(this.stack(e)) ||
                            found.text(this.name(e)))))
        out.push(e);
    }
    return out;
  }
  // Failed allocations stand out.
  failed(e: number): boolean { return this.action[e] === kOom; }
}

const kept = new WeakMap<Series, EventList>();
export function eventsOf(series: Series): EventList {
  let list = kept.get(series);
  if (!list) kept.set(series, list = new EventList(series));
  return list;
}
