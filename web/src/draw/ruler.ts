// SPDX-License-Identifier: Apache-2.0
//
// Ticks of a time axis: absolute when coarse; one base and offsets when
// zoomed in so far that absolute labels would all look alike.

import { time } from "../ui/format";

export interface Tick {
  at: number;     // ns
  label: string;
}

function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5, 10])
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

// The end and the step of an axis from 0 that holds `most`.
export function niceTop(most: number, steps: number):
    { top: number; step: number } {
  const step = niceStep(most / steps);
  return { top: Math.ceil(most / step) * step, step };
}

// `always`: absolute at any zoom.
export function ticks(from: number, to: number, most: number, always = false):
    { base: string; ticks: Tick[] } {
  const step = Math.max(1, niceStep((to - from) / Math.max(1, most)));
  const first = Math.ceil(from / step) * step;
  const absolute = always || from === 0 || step * 1000 > Math.abs(to);
  const base = absolute ? 0 : Math.floor(from / (step * 10)) * step * 10;
  const list: Tick[] = [];
  for (let at = first; at <= to && list.length < 100; at += step) {
    const shown = at - base;
    list.push({ at, label: (absolute ? "" : "+") + tickText(shown, step) });
  }
  return { base: absolute ? "" : exactTime(base, step), ticks: list };
}

const kUnits: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"],
                                    [1, "ns"]];

// With as many digits as the step needs.
function tickText(ns: number, step: number): string {
  if (ns === 0) return "0";
  const [size, unit] = kUnits.find(([s]) => Math.abs(ns) >= s) ?? kUnits[3]!;
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return (ns / size).toFixed(Math.min(digits, 9)) + " " + unit;
}
function exactTime(ns: number, step: number): string {
  return ns === 0 ? time(0) : tickText(ns, step);
}
