// SPDX-License-Identifier: Apache-2.0
//
// Small inputs whose text is kept in the address.

import type { App } from "./app";
import { h } from "./dom";

export function textFilter(app: App, option: string, label: string,
                           example: string): HTMLElement {
  let wait = 0;
  const input = h("input", {
    type: "search", placeholder: example, "data-k": option, size: 18,
    spellcheck: "false", autocomplete: "off",
    input: () => {
      clearTimeout(wait);
      wait = setTimeout(() => app.go(app.withOption(option, input.value), true),
                        200) as unknown as number;
    },
  });
  input.value = app.option(option);
  return h("label", { class: "muted" }, label + " ", input);
}

// One of some values; the first that is not in the address says what is usual.
export function choice(app: App, option: string, label: string,
                       values: [value: string, text: string][],
                       now = app.option(option)): HTMLSelectElement {
  const select = h("select", { "aria-label": label, "data-k": option,
    change: () => app.go(app.withOption(option, select.value)) },
    ...values.map(([value, text]) => h("option", { value }, text)));
  select.value = values.some(([value]) => value === now) ? now
    : values[0]?.[0] ?? "";
  return select;
}

export interface NumberLimit {
  key: string;
  less: boolean;
  value: number;
}

// "mean>100us roof<40": names of columns, times with a unit in ns.
export function parseNumberFilter(text: string): NumberLimit[] {
  const units: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
  const limits: NumberLimit[] = [];
  const pattern = /([a-z]+)\s*([<>])\s*(\d+(?:\.\d+)?)(ns|us|ms|s)?/g;
  for (const [, key, sign, number, unit] of text.matchAll(pattern)) {
    limits.push({ key: key!, less: sign === "<",
                  value: Number(number) * (unit ? units[unit]! : 1) });
  }
  return limits;
}
