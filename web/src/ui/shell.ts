// SPDX-License-Identifier: Apache-2.0
//
// What stays while views change: header with tabs, filter chips, the panel of
// the selected event, and the line at the foot.
//
// Longer than most: what each change of state draws anew is decided here.

import { Refused } from "../data/live";
import { drawAnswer, isAnswerView } from "./answer";
import { type App, type View } from "./app";
import { drawChips, drawSingles, kChipTables } from "./chips";
import { copyCommand } from "./command";
import { copyText, h } from "./dom";
import { findEvent } from "./events";
import { clean } from "./format";
import { helpDialog, onKey } from "./keys";
import { drawPanel, panelNeeds } from "./panel";
import { PrintForm } from "./print";
import { SearchBox } from "./search";

const kEssential = ["kernels", "trace_health"];

export class Shell {
  readonly root: HTMLElement;
  readonly print: PrintForm;
  readonly frames: number[] = [];  // ms of each drawing
  private readonly tabs = new Map<string, HTMLAnchorElement>();
  private readonly chips = h("div", { id: "chips" });
  private readonly main = h("main", { id: "view", tabindex: "-1",
                                      role: "tabpanel" });
  private readonly answer = h("section", { id: "answer", "aria-label":
    "Answer", hidden: true });
  private readonly panel = h("aside", { "aria-label": "Selected event",
                                        hidden: true });
  private readonly foot = h("footer", { role: "status" });
  private readonly search: SearchBox;
  private readonly system = matchMedia("(prefers-color-scheme: dark)");
  private turn = 0;
  private shown = "";
  private onPaper = false;

  constructor(private readonly app: App, private readonly views: View[],
              first: string) {
    app.show = (text) => { this.foot.textContent = text; };
    this.search = new SearchBox(app);
    this.print = new PrintForm(app, views, first);
    const help = helpDialog(app.model.manifest.privacy);
    const openHelp = () => { if (!help.open) help.showModal(); };
    this.root = h("div", {},
      h("a", { class: "skip", href: "#view", click: (event: Event) => {
        event.preventDefault();
        (this.main.querySelector<HTMLElement>("canvas[tabindex]") ?? this.main)
          .focus();
      } }, "Skip to the view"),
      h("header", {},
        document.getElementById("live")
          ? h("a", { class: "brand", href: "/" }, "lamina")
          : h("span", { class: "brand" }, "lamina"),
        h("span", { class: "file", title: clean(app.model.title) },
          clean(app.model.title, 80) || app.model.manifest.command),
        ...(app.model.manifest.redacted
          ? [h("span", { class: "redacted", title: app.model.manifest.privacy },
               "redacted")]
          : []),
        this.drawTabs(), this.search.root,
        h("div", { class: "icons" },
          app.button("Theme", () => this.switchTheme(), { "data-k": "theme",
            title: "Dark or light (T)" }),
          app.button("Link", () => void copyText(location.href).then((done) =>
            app.say(done ? "Address copied: it opens this picture for anyone " +
              "who has the file" : "The browser did not allow to copy")),
            { "data-k": "link", title: "Copy the address of what is shown" }),
          app.button("Command", () => void copyCommand(app),
            { "data-k": "command", title: "Copy a lamina command that gives " +
              "the rows that are shown" }),
          app.button("?", openHelp, { "aria-label": "Keys", "data-k": "help" }))),
      h("h1", { class: "offscreen" },
        `lamina ${app.model.manifest.command}: ${clean(app.model.title, 200)}`),
      this.answer, this.chips, this.main, this.panel, this.foot, help, this.print.root);
    addEventListener("keydown", (event) => onKey(app, this, event, openHelp));
    this.system.addEventListener("change", () => void this.render());
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      void this.render();
    });
    const print = (on: boolean) => on ? this.beginPrint() : this.endPrint();
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    matchMedia("print").addEventListener("change", (e) => print(e.matches));
  }

  get viewIds(): string[] { return this.views.map((view) => view.id); }
  get view(): View | undefined {
    return this.views.find((view) => view.id === this.app.state.view);
  }
  focusSearch(): void { this.search.focus(); }

  async render(): Promise<void> {
    const { app } = this;
    const turn = ++this.turn;
    const view = this.view;
    if (!view) throw new Error("no view");
    delete document.documentElement.dataset.ready;
    const needs = new Set([...kEssential, ...view.needs(app.model)]);
    if (app.state.chips.length > 0) kChipTables.forEach((t) => needs.add(t));
    if (app.state.selected || isAnswerView(app)) panelNeeds().forEach((t) => needs.add(t));
    await app.model.require(needs);
    await this.fetch();
    if (turn !== this.turn) return;
    const begin = performance.now();
    this.setTheme();
    app.selection = app.filter.select(app.state.chips);
    if (view.prepare) {
      this.main.classList.add("busy");
      await view.prepare(app);
      if (turn !== this.turn) return;
    }
    this.main.classList.remove("busy");
    const focused = document.activeElement?.getAttribute("data-k");
    const typed = typedText();
    this.drawLinks();
    this.chips.replaceChildren(
      ...(app.state.chips.length > 0 ? [drawChips(app)] : []));
    if (app.state.chips.length > 0 && !view.filtered) {
      this.chips.append(h("p", { class: "muted" },
        "This view is not filtered."));
    }
    const singles = view.filtered || view.needs(app.model).includes("device")
      ? drawSingles(app, view.filtered) : null;
    if (singles) this.chips.append(singles);
    // The panel stands beside the view, so that it covers nothing of it.
    if (app.state.selected) {
      this.root.style.setProperty("--head",
        `${this.root.querySelector("header")!.offsetHeight}px`);
    }
    // Three panes that stay: the answer, the timeline, what is selected.
    const three = isAnswerView(app) && view.id === "timeline" &&
      innerWidth >= 700 && innerHeight >= 560;
    document.documentElement.classList.toggle("three", three);
    this.root.classList.toggle("docked", !three && app.state.selected !== "");
    drawAnswer(app, this.answer);
    const content = h("div", { class: "view-" + view.id });
    view.draw(app, content);
    this.main.replaceChildren(content);
    this.main.setAttribute("aria-label", view.title);
    view.mounted?.(app, content);
    drawPanel(app, this.panel);
    if (!three && !app.state.selected) this.panel.hidden = true;
    if (focused) {
      const again = this.root.querySelector<HTMLElement>(
        `[data-k="${CSS.escape(focused)}"]`);
      (again ?? this.main).focus({ preventScroll: true });
      keepTyped(again, typed);
    }
    if (this.shown !== view.id) {
      if (this.shown) scrollTo(0, 0);
      this.shown = view.id;
      this.tabs.get(view.id)?.scrollIntoView({ block: "nearest",
                                               inline: "nearest" });
    }
    this.frames.push(performance.now() - begin);
    document.documentElement.dataset.ready = view.id;
  }

  // What the state asks for and the page does not hold.
  private async fetch(): Promise<void> {
    const { app } = this;
    const { served } = app;
    if (!served || !app.model.device) return;
    const uid = Number(app.state.selected || -1);
    try {
      await Promise.all([app.filter.prepare(app.state.chips),
        Number.isSafeInteger(uid) && uid >= 0 && !findEvent(app, uid)
          ? served.fetchEvent(uid) : null]);
    } catch (error) {
      // The page then shows what it holds, and says so.
      if (!(error instanceof Refused)) throw error;
      app.say(`${error.message}. ${error.hint}`);
    }
  }

  // Tabs carry the state to the other views.
  drawLinks(): void {
    const { app } = this;
    for (const [id, tab] of this.tabs) {
      tab.setAttribute("aria-selected", String(id === app.state.view));
      tab.tabIndex = id === app.state.view ? 0 : -1;
      tab.href = app.href({ view: id });
    }
  }

  private drawTabs(): HTMLElement {
    const nav = h("nav", { role: "tablist", "aria-label": "Views",
      keydown: (event: KeyboardEvent) => this.tabKey(event) });
    const failed = failedChecks(this.app);
    for (const view of this.views) {
      const tab = h("a", { role: "tab", href: "#", "data-k": "tab." + view.id,
                           "aria-controls": "view" }, view.title);
      if (view.id === "health" && failed > 0) {
        tab.append(h("span", { class: "badge",
          title: `${failed} checks need a look` }, failed));
      }
      this.tabs.set(view.id, tab);
      nav.append(tab);
    }
    return nav;
  }

  private tabKey(event: KeyboardEvent): void {
    const step = event.key === "ArrowRight" ? 1
      : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const ids = this.viewIds;
    const at = ids.indexOf(this.app.state.view);
    const next = ids[(at + step + ids.length) % ids.length]!;
    this.tabs.get(next)?.focus();
    this.app.go({ view: next });
  }

  // Paper is light. Media queries may tell of a change of theme or width
  // meanwhile.
  private setTheme(): void {
    const theme = this.app.state.theme || (this.system.matches ? "dark" : "");
    document.documentElement.dataset.theme =
      !this.onPaper && theme === "dark" ? "dark" : "light";
  }
  private beginPrint(): void {
    if (this.onPaper) return;
    this.onPaper = true;
    this.setTheme();
    this.print.fill();
  }
  private endPrint(): void {
    if (!this.onPaper) return;
    this.onPaper = false;
    this.print.empty();
    void this.render();
  }
  switchTheme(): void {
    const dark = document.documentElement.dataset.theme === "dark";
    this.app.go({ theme: dark ? "light" : "dark" }, true);
  }
}

// Text in the box that has the focus. What is typed while a view is drawn again
// goes into the box of the new view.
function typedText(): string | null {
  const box = document.activeElement;
  return box instanceof HTMLInputElement && box.type === "search"
    ? box.value : null;
}
function keepTyped(box: Element | null, typed: string | null): void {
  if (typed === null || !(box instanceof HTMLInputElement) ||
      box.value === typed) return;
  box.value = typed;
  box.dispatchEvent(new Event("input"));
}

// Checks of trace health that found something; the notes say it without the
// table.
function failedChecks(app: App): number {
  return app.model.manifest.notes
    .filter((note) => note.severity === "warning").length;
}
