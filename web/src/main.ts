// SPDX-License-Identifier: Apache-2.0
//
// The page: reads the file, draws the view that the address names, and draws
// again when the address changes. All state is in the address. trace.ts and
// graph.ts start it, each with the views of its kind of page.

import { DamagedFile } from "./data/decode";
import { laterFindings, loadParts, Refused, servedTrace } from "./data/live";
import { Model } from "./data/model";
import { fromHash, kStart, type Chip } from "./data/state";
import { App, type View } from "./ui/app";
import { groupColor, ink, kGroups, textOn } from "./ui/colors";
import { h } from "./ui/dom";
import { Shell } from "./ui/shell";

export interface Program {
  views: View[];  // in the order of their tabs
  // Views of the other program: what Trace health says of them.
  elsewhere: { title: string; reason: string }[];
  // What tests read of this program's views.
  forTests(app: App): object;
}

function fail(error: unknown): void {
  if (error instanceof Refused) {
    document.getElementById("static")?.remove();
    document.getElementById("app")?.replaceChildren(h("main", {},
      h("p", { class: "damaged", role: "alert" },
        `${error.message}. ${error.hint} `,
        h("a", { href: "/" }, "All traces"))));
    document.documentElement.dataset.ready = "refused";
    return;
  }
  const text = error instanceof DamagedFile ? error.message
    : "the page met something that it does not understand";
  // The summary that the writer put into the file stays readable.
  document.getElementById("app")?.replaceChildren(h("main", {},
    h("p", { class: "damaged", role: "alert" },
      `This report cannot be shown: ${text}. ` +
      "Write it again with lamina report --format html.")));
  document.documentElement.dataset.ready = "damaged";
  if (!(error instanceof DamagedFile)) console.error(error);
}

async function start(program: Program): Promise<void> {
  const begin = performance.now();
  await loadParts();
  const model = await Model.load();
  const app = new App(model, { ...kStart });
  const views = program.views.filter((view) => view.missing(model) === null);
  const ids = new Set(views.map((view) => view.id));
  // A page opens with the answer of its command: where no view has its name and
  // none is an overview of the trace, with its sentences above the tables.
  const { command } = model.manifest;
  const first = model.manifest.answer && ids.has("timeline") ? "timeline"
    : ids.has(command) ? command : command === "annotate" ? "tables" : views[0]?.id ?? "tables";
  app.missing = [...program.views.filter((view) => !views.includes(view))
    .map((view) => ({ title: view.title, reason: view.missing(model)! })),
    ...program.elsewhere];
  const shell = new Shell(app, views, first);
  document.getElementById("static")?.remove();
  document.getElementById("app")!.replaceChildren(shell.root);

  if (servedTrace() && model.manifest.notes
      .some((note) => note.id === "findings_later")) {
    void laterFindings().then((why) => app.say(why === ""
      ? "The findings are here: load this page again to see them."
      : `There are no findings: ${why}`), () => undefined);
  }

  let shown = "";  // the address of what is drawn or being drawn
  const read = () => {
    shown = location.hash;
    const { state, dropped } = fromHash(location.hash, ids);
    if (!/[#&]v=/.test(location.hash)) state.view = first;
    if (!ids.has(state.view)) state.view = first;
    app.state = state;
    if (dropped > 0) {
      app.say(`${dropped} ${dropped === 1 ? "part" : "parts"} of the ` +
              "address cannot be used here and were left out");
    }
    return shell.render().catch(fail);
  };
  app.go = (patch, replace = false) => {
    const hash = app.href(patch);
    if (hash !== location.hash) {
      if (replace) history.replaceState(null, "", hash);
      else history.pushState(null, "", hash);
    }
    void read();
  };
  app.keep = (patch) => {
    // A link was followed meanwhile: its address stays.
    if (location.hash !== shown) return;
    app.state = { ...app.state, ...patch };
    history.replaceState(null, "", app.href({}));
    shown = location.hash;
    shell.drawLinks();
  };
  addEventListener("popstate", () => void read());
  await read();
  if (app.said === "")
    app.say(`Ready in ${Math.round(performance.now() - begin)} ms`);

  shell.print.prepare();

  // For tests; the page itself does not read it.
  Object.defineProperty(globalThis, "__lamina", { value: Object.freeze({
    state: () => structuredClone(app.state),
    selection: () => ({ count: app.selection.count, time: app.selection.time }),
    sums: (column: "kernel" | "family" | "op" | "module" | "layer" | "pass" |
           "step" | "lane", size: number) => app.filter.by(column, size),
    select: (chips: Chip[]) => app.filter.select(chips).time,
    filterMask: (chips: Chip[]) => app.filter.mask(chips) ??
      new Uint8Array(model.device?.rows ?? 0).fill(1),
    href: () => app.href({}),
    model,
    palette: () => ({
      colors: Object.fromEntries(kGroups.map((g) => [g, groupColor(g)])),
      inks: Object.fromEntries(kGroups.map((g) => [g, textOn(g)])),
      grounds: [ink("page"), ink("panel")] }),
    frames: shell.frames, ...program.forTests(app),
  }) });
}

export function run(program: Program): void { start(program).catch(fail); }
