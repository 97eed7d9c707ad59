// SPDX-License-Identifier: Apache-2.0
//
// Filters of the page as conditions of `lamina slice --where`, which choose the
// same events.

import { shellWord } from "./quote";
import { parseBound, parseRange, type Chip, type ChipKind } from "./state";

// The field of a condition for each kind of filter; the engine says in the
// file which fields it knows.
const kFields: Partial<Record<ChipKind, string>> = {
  q: "text", fam: "group", cat: "family", name: "kernel", op: "op",
  row: "op_efficiency", mod: "module", layer: "layers", pass: "pass",
  stage: "stage", step: "step", lane: "stream", t: "time", dur: "length",
  uid: "event",
};

// Names of this length may have been cut when the page was written.
const kMostBytes = 9900;

// A span of nanoseconds, end excluded; open where the page counts from below 0.
export function spanText(from: number, to: number): string {
  return (from >= 0 ? `${from}ns` : "") + ".." +
    (Number.isFinite(to) ? `${to}ns` : "");
}

// Null for a value that no condition or no command line can hold.
function conditionValue(kind: ChipKind, value: string): string | null {
  if (kind === "t") {
    const range = parseRange(value);
    return range && range[1] > 0 ? spanText(...range) : null;
  }
  if (kind === "dur") {
    const bound = parseBound(value);
    return bound && bound[0] <= bound[1] ? spanText(bound[0], bound[1] + 1)
      : null;
  }
  // The engine knows words, and lower and upper case of ASCII.
  // eslint-disable-next-line no-control-regex
  if (kind === "q" && (/^\/.+\/$/.test(value) || /[^\x00-\x7f]/.test(value)))
    return null;
  const fits = new TextEncoder().encode(value).length < kMostBytes;
  return fits && shellWord(value) !== null ? value : null;
}

export interface Conditions {
  texts: string[];     // FIELD=VALUE
  leftOut: Chip[];
}

// Values of one field are joined by OR, so of two chips of a field that must
// both hold only the first can be said.
export function conditionsOf(chips: Chip[], known: string[]): Conditions {
  const out: Conditions = { texts: [], leftOut: [] };
  const said = new Set<string>();
  for (const chip of chips) {
    const field = kFields[chip.kind];
    const values = chip.values.map((v) => conditionValue(chip.kind, v));
    const twice = !chip.not && said.has(chip.kind);
    if (!field || !known.includes(field) || twice || values.includes(null)) {
      out.leftOut.push(chip);
      continue;
    }
    if (!chip.not) said.add(chip.kind);
    for (const value of values)
      out.texts.push(`${field}${chip.not ? "!" : ""}=${value}`);
  }
  return out;
}
