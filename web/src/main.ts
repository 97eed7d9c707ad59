// SPDX-License-Identifier: Apache-2.0
//
// The page: reads the file, draws the view that the address names, and draws
// again when the address changes. All state is in the address.

import { DamagedFile } from "./data/decode";
import { Model } from "./data/model";
import { fromHash, kStart } from "./data/state";
import { App } from "./ui/app";
import { h } from "./ui/dom";
import { Shell } from "./ui/shell";
import { kViews } from "./views/list";

function fail(error: unknown): void {
  const text = error instanceof DamagedFile ? error.message
    : "the page met something that it does not understand";
  const root = document.documentElement;
  root.classList.add("started");
  document.getElementById("app")?.replaceChildren(h("main", {},
    h("p", { class: "damaged", role: "alert" },
      `This report cannot be shown: ${text}. ` +
      "Write it again with lamina report --format html.")));
  root.dataset.ready = "damaged";
  if (!(error instanceof DamagedFile)) console.error(error);
}

async function start(): Promise<void> {
  const begin = performance.now();
  const model = await Model.load();
  const app = new App(model, { ...kStart });
  const views = kViews.filter((view) => view.missing(model) === null);
  const ids = new Set(views.map((view) => view.id));
  const shell = new Shell(app, views,
    kViews.filter((view) => !views.includes(view)));
  document.documentElement.classList.add("started");
  document.getElementById("app")!.replaceChildren(shell.root);

  const read = () => {
    const { state, dropped } = fromHash(location.hash, ids);
    if (!ids.has(state.view)) state.view = views[0]?.id ?? "tables";
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
    app.state = { ...app.state, ...patch };
    history.replaceState(null, "", app.href({}));
    shell.drawLinks();
  };
  addEventListener("popstate", () => void read());
  await read();
  if (app.said === "")
    app.say(`Ready in ${Math.round(performance.now() - begin)} ms`);

  // For tests; the page itself does not read it.
  Object.defineProperty(globalThis, "__lamina", { value: Object.freeze({
    state: () => structuredClone(app.state),
    selection: () => ({ count: app.selection.count, time: app.selection.time }),
    sums: (column: "kernel" | "family" | "op" | "module" | "layer" | "pass" |
           "step" | "lane", size: number) => app.filter.by(column, size),
    model,
    frames: shell.frames,
  }) });
}

start().catch(fail);
