// SPDX-License-Identifier: Apache-2.0
//
// Keys of the whole page. Letters are physical keys, so that other layouts
// work; no key acts while somebody types.

import { openFix } from "./answer";
import type { App } from "./app";
import { h } from "./dom";
import { neighbour, stepEvent } from "./events";
import { stepGap } from "./gaps";
import type { Shell } from "./shell";

const kHelp: [string, string][] = [
  ["1 \u2026 9, 0", "Views"],
  ["/", "Search"],
  ["W S A D", "Timeline: zoom in and out at the pointer, left, right"],
  ["F", "Timeline: the selection; again: the whole trace"],
  ["Enter", "Timeline: next matching event in the middle; with shift the one " +
    "before"],
  ["M", "Timeline: mark the time of the selection, with all that lies in it"],
  ["N", "Timeline: a flag with a note; Q: pin the track of the selection"],
  ["\u2190 \u2192", "Previous and next matching event"],
  ["[ ]", "Previous and next event of the same name"],
  ["G", "Next longest gap of a GPU; with shift the one before"],
  ["Enter", "Open"],
  ["Backspace", "Modules: one level up"],
  ["C", "Copy the table as CSV"],
  ["T", "Dark or light"],
  ["Esc", "Close the panel, then clear the filter"],
  ["?", "This list"],
];

export function helpDialog(privacy: string): HTMLDialogElement {
  const dialog = h("dialog", { "aria-label": "Keys" });
  dialog.append(h("h2", {}, "Keys"), h("dl", {},
    ...kHelp.flatMap(([keys, what]) => [
      h("dt", {}, ...keys.split(" ").map((key) => h("kbd", {}, key))),
      h("dd", {}, what)])),
    h("p", { class: "muted" }, privacy,
      " The page makes no request and stores nothing."),
    h("form", { method: "dialog" }, h("button", {}, "Close")));
  return dialog;
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return event.ctrlKey || event.metaKey || event.altKey ||
    target.tagName === "INPUT" || target.tagName === "SELECT" ||
    document.querySelector("dialog[open]") !== null;
}

export function onKey(app: App, shell: Shell, event: KeyboardEvent,
                      openHelp: () => void): void {
  if (isTyping(event)) return;
  if (shell.view?.key?.(app, event)) {
    event.preventDefault();
    return;
  }
  if (act(app, shell, event, openHelp)) event.preventDefault();
}

function act(app: App, shell: Shell, event: KeyboardEvent,
             openHelp: () => void): boolean {
  if (event.key === "?") return openHelp(), true;
  if (event.key === "/") return shell.focusSearch(), true;
  if (event.key === "Escape") return escape(app);
  if (event.key === "[" || event.key === "]")
    return select(app, neighbour(app, event.key === "]" ? 1 : -1));
  const digit = /^Digit(\d)$/.exec(event.code);
  if (digit && !event.shiftKey) {
    const view = shell.viewIds[(Number(digit[1]) + 9) % 10];
    if (view) app.go({ view });
    return view !== undefined;
  }
  switch (event.code) {
    case "KeyT": return shell.switchTheme(), true;
    case "KeyC": {
      const copy = document.querySelector<HTMLElement>("[data-copy=csv]");
      copy?.click();
      return copy !== null;
    }
    case "KeyG": {
      if (!app.model.hasEvents) return false;
      void app.model.require(["device"]).then(() => {
        const patch = stepGap(app, event.shiftKey ? -1 : 1);
        if (patch) app.go(patch);
        else app.say("There is no further gap of a GPU");
      });
      return true;
    }
    case "ArrowLeft":
    case "ArrowRight": {
      if ((event.target as HTMLElement).closest(".tablebox, [role=tab]"))
        return false;
      return app.model.device !== null && app.state.selected !== "" &&
        select(app, stepEvent(app, event.code === "ArrowRight" ? 1 : -1));
    }
    default: return false;
  }
}

function escape(app: App): boolean {
  if (app.state.selected) app.go({ selected: "" });
  else if (openFix(app) > 0) app.go(app.withOption("answer.fix", ""));
  else if (app.state.chips.length > 0) app.go({ chips: [] });
  else return false;
  return true;
}

function select(app: App, uid: number | null): boolean {
  if (uid !== null) app.go({ selected: String(uid) }, true);
  return uid !== null;
}
