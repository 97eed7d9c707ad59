// SPDX-License-Identifier: Apache-2.0
//
// What goes to paper, whatever view is shown: the trace, the filter in words,
// and the views that answer first, in light colours and without controls. The
// browser asks for it without waiting, so what it shows is read after the first
// screen, when the page has nothing else to do; in a large page, where that would
// hold up the first clicks, with the keys that print.

import type { App, View } from "./app";
import { filterText, kChipTables, matchingWords } from "./chips";
import { h } from "./dom";
import { clean } from "./format";
import { paper } from "./paper";

// Views of the form: of a report those that a reader of it opens first, else
// the one of the command.
const kOfReport = ["overview", "layers", "ops"];
// Device events up to which the form is read ahead.
const kReadAhead = 300_000;
const kLongWord = /\S{25}/;

function filterLine(app: App): string {
  const all = app.model.device?.total;
  const { chips } = app.state;
  const line = chips.length === 0 ? "No filter"
    : "Filters: " + chips.map((chip) => filterText(app, chip)).join("; ");
  return all === undefined ? line + "."
    : `${line}. ${matchingWords(app, all)}.`;
}

// Controls say nothing on paper; what names a colour or a column stays.
function withoutControls(root: HTMLElement): void {
  for (const control of root.querySelectorAll("button")) {
    const keep = control.closest(".legend, th") !== null;
    control.replaceWith(...keep ? [h("span", {}, ...control.childNodes)] : []);
  }
  for (const control of root.querySelectorAll("label, input, select, .menu"))
    control.remove();
  for (const link of root.querySelectorAll("a")) {
    link.removeAttribute("href");
    link.removeAttribute("aria-label");
  }
  for (const folded of root.querySelectorAll("details")) folded.open = true;
  for (const sized of root.querySelectorAll("[tabindex], [data-k]")) {
    sized.removeAttribute("tabindex");
    sized.removeAttribute("data-k");
  }
}

// A table that is wider than the paper is printed smaller; words that no line
// has room for, names of kernels above all, are parted before.
function fitTables(root: HTMLElement): void {
  for (const cell of root.querySelectorAll("td"))
    if (kLongWord.test(cell.textContent)) cell.classList.add("long");
  for (const box of root.querySelectorAll<HTMLElement>(".tablebox")) {
    const table = box.querySelector("table")!;
    const share = box.clientWidth / table.offsetWidth;
    if (share > 0 && share < 1)
      table.style.setProperty("zoom", String(Math.floor(share * 100) / 100));
  }
}

export class PrintForm {
  readonly root = h("div", { id: "print", "aria-hidden": "true" });
  private readonly views: View[];
  private ready = false;

  constructor(private readonly app: App, views: View[], first: string) {
    const report = first === "overview" || first === "timeline";
    const wanted = report ? kOfReport : [first, "overview"];
    this.views = wanted.flatMap((id) => views.filter((v) => v.id === id));
  }

  // Sees to it that the form is read before the browser prints.
  prepare(): void {
    addEventListener("keydown", (event) => {
      if (this.ready || event.code !== "KeyP" || event.altKey ||
          !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      void this.read().then(() => print());
    });
    const blocks = this.app.model.manifest.blocks;
    if (blocks.some((b) => b.name === "device" && b.rows > kReadAhead)) return;
    const idle = globalThis.requestIdleCallback ?? ((f) => setTimeout(f, 200));
    idle(() => void this.read(), { timeout: 1000 });
  }

  // Reads what the form shows. A damaged part is told by the view that needs
  // it; the form is then left out, and print shows the view.
  private async read(): Promise<void> {
    const { model } = this.app;
    try {
      for (const view of this.views) await model.require(view.needs(model));
      this.ready = true;
      document.documentElement.dataset.print = "ready";
    } catch {
      this.ready = false;
    }
  }

  // Draws the form into the page, where it has the width of the paper.
  fill(): void {
    const { app } = this;
    if (!this.ready || this.root.firstChild || !this.canFilter()) return;
    const { model } = app;
    paper.on = true;
    app.selection = app.filter.select(app.state.chips);
    document.documentElement.dataset.form = "1";
    this.root.append(h("div", { class: "sheet" },
      h("p", { class: "brand" }, `lamina ${model.manifest.command}`),
      h("h1", {}, clean(model.title, 400) || model.manifest.command),
      h("p", { class: "filters" }, filterLine(app)),
      h("p", { class: "muted" }, `lamina ${model.manifest.version}, from ` +
        clean(model.manifest.inputs.slice(0, 4).join(", ") ||
              "standard input", 600) + (model.manifest.inputs.length > 4
          ? ` and ${model.manifest.inputs.length - 4} more` : ""))));
    for (const view of this.views) {
      const content = h("section", { class: "sheet view-" + view.id },
        h("h2", { class: "title" }, view.title));
      view.draw(app, content);
      this.root.append(content);
      view.mounted?.(app, content);
    }
    withoutControls(this.root);
    fitTables(this.root);
  }

  empty(): void {
    paper.on = false;
    delete document.documentElement.dataset.form;
    this.root.replaceChildren();
  }

  // Chips read tables that a view which was never shown may lack.
  private canFilter(): boolean {
    const { model, state } = this.app;
    return state.chips.length === 0 ||
      kChipTables.every((name) => model.has(name));
  }
}
