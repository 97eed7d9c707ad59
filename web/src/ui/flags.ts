// SPDX-License-Identifier: Apache-2.0
//
// Flags with notes on the ruler of the timeline. They are part of the address.

import type { App, Patch } from "./app";
import { h } from "./dom";
import { clean, time } from "./format";

export interface Flag { at: number; text: string }

const kMostFlags = 20;
const kMostText = 120;

// "1200:text;3400:other"; what does not fit is left out.
export function flagsOf(app: App): Flag[] {
  return app.option("timeline.flags").split(";").flatMap((part) => {
    const match = /^(-?\d{1,16}):(.*)$/s.exec(part);
    return match ? [{ at: Number(match[1]),
                      text: match[2]!.slice(0, kMostText) }] : [];
  }).slice(0, kMostFlags);
}

function patch(app: App, flags: Flag[]): Patch {
  return app.withOption("timeline.flags", flags.slice(-kMostFlags)
    .map(({ at, text }) => `${at}:${text.replace(/;/g, ",")}`).join(";"));
}

export function addFlag(app: App, at: number): Patch {
  return patch(app, [...flagsOf(app).filter((flag) => flag.at !== at),
                     { at, text: "" }]);
}

// One line per flag: its time leads there, its text can be typed.
export function drawFlags(app: App): HTMLElement | null {
  const flags = flagsOf(app);
  return flags.length === 0 ? null : h("div", { class: "flags tools" },
    ...flags.map((flag, i) => {
      const others = flags.filter((other) => other !== flag);
      const input = h("input", { type: "text", size: 16, maxlength: kMostText,
        "aria-label": `Note at ${time(flag.at)}`, "data-k": `flag.${i}`,
        placeholder: "note", change: () => app.go(patch(app, flags.map((one) =>
          one === flag ? { ...one, text: input.value } : one)), true) });
      input.value = clean(flag.text, kMostText);
      return h("span", { class: "chip" }, app.button(`\u2691 ${time(flag.at)}`,
        () => {
          const [from, to] = app.state.zoom ?? [flag.at - 5e6, flag.at + 5e6];
          const half = (to - from) / 2;
          app.go({ zoom: [Math.round(flag.at - half),
                          Math.round(flag.at + half)] });
        }, { class: "kind", "data-k": `flag.go.${i}` }), input,
        app.button("\u00d7", () => app.go(patch(app, others)), { class: "close",
          "aria-label": `Remove the flag at ${time(flag.at)}`,
          "data-k": `flag.x.${i}` }));
    }));
}
