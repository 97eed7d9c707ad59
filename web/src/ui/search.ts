// SPDX-License-Identifier: Apache-2.0
//
// The search box: distinct names, not events, so it looks at thousands of
// texts. Results are links to filters; Enter applies the chosen one.
//   words   name: op: module: host: shape:5185   dur>1ms   layer:3-5   /regex/
//   op:bmm|mm -layer:0 dur>1ms   all together (query.ts)

import { nameHits, textTest } from "../data/filter";
import { shellLine } from "../data/quote";
import type { Chip } from "../data/state";
import type { App, Patch } from "./app";
import { kChipTables, parseTime } from "./chips";
import { copyText, h } from "./dom";
import { showEvent } from "./events";
import { count, kernelName, shapes, time } from "./format";
import { parseTerms, resolve } from "./query";

interface Hit {
  group: string;
  text: string;
  detail: string;
  patch: Patch;
  copies?: string;   // a command: it is copied in place of a change
}

const kMostPerGroup = 8;
const kTables = ["kernels", "op_efficiency", "modules", "layers", "host"];

export class SearchBox {
  readonly root: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly list = h("ul", { class: "results", role: "listbox",
    id: "results", "aria-label": "Results", hidden: true,
    // A click in the list leaves the focus in the box.
    mousedown: (event: Event) => event.preventDefault() });
  private hits: Hit[] = [];
  private chosen = 0;

  constructor(private readonly app: App) {
    this.input = h("input", {
      type: "search", placeholder: "op:mm dur>1ms layer:3-5   /", role: "combobox",
      "aria-label": "Search names", "aria-expanded": "false",
      "aria-controls": "results", "aria-autocomplete": "list",
      autocomplete: "off", spellcheck: "false", "data-k": "search",
      input: () => void this.look(), focus: () => void this.look(),
      blur: () => this.close(),
      keydown: (event: KeyboardEvent) => this.onKey(event),
    });
    this.root = h("div", { class: "search", role: "search" },
                  this.input, this.list);
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  private close(): void {
    this.list.hidden = true;
    delete this.list.dataset.query;
    this.input.setAttribute("aria-expanded", "false");
  }

  // False if the box has changed or was left before the names were there.
  private async look(): Promise<boolean> {
    const query = this.input.value.trim();
    if (query === "") {
      this.close();
      return false;
    }
    await this.app.model.require(parseTerms(query) ? [...kTables, ...kChipTables]
      : kTables);
    if (query !== this.input.value.trim() ||
        document.activeElement !== this.input) return false;
    this.hits = find(this.app, query);
    this.chosen = 0;
    this.draw();
    this.list.dataset.query = query;
    return true;
  }

  private draw(): void {
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.list.replaceChildren();
    let group = "";
    for (const [i, hit] of this.hits.entries()) {
      if (hit.group !== group) {
        group = hit.group;
        this.list.append(h("li", { class: "group", role: "presentation" },
                           group));
      }
      this.list.append(h("li", {
        role: "option", id: "hit" + i,
        "aria-selected": i === this.chosen ? "true" : "false",
        click: () => this.apply(i),
      }, kernelName(hit.text, 160), " ", h("small", {}, hit.detail)));
    }
    if (this.hits.length === 0) {
      this.list.append(h("li", { class: "group" },
        "No name matches. Words are all searched for; /x/ is a regular " +
        "expression; op:mm dur>1ms layer:3-5 is all of them together."));
      this.input.removeAttribute("aria-activedescendant");
    } else {
      this.input.setAttribute("aria-activedescendant", "hit" + this.chosen);
      document.getElementById("hit" + this.chosen)
        ?.scrollIntoView({ block: "nearest" });
    }
  }

  private apply(at: number): void {
    const hit = this.hits[at];
    if (!hit) return;
    this.close();
    this.input.value = "";
    this.input.blur();
    if (hit.copies === undefined) return this.app.go(hit.patch);
    void copyText(hit.copies).then((done) => this.app.say(done
      ? `Copied: ${hit.copies}` : "The browser did not allow to copy"));
  }

  private onKey(event: KeyboardEvent): void {
    const { key } = event;
    if (key === "Escape") {
      this.close();
      this.input.blur();
    } else if (key === "Enter") {
      const seen = !this.list.hidden &&
        this.list.dataset.query === this.input.value.trim();
      if (seen) this.apply(this.chosen);
      // The names are still being read: the first result when they are there.
      else void this.look().then((found) => { if (found) this.apply(0); });
    } else if (key === "ArrowDown" || key === "ArrowUp") {
      const count = this.hits.length;
      if (count > 0) {
        this.chosen = (this.chosen + (key === "ArrowDown" ? 1 : count - 1)) %
          count;
        this.draw();
      }
    } else {
      return;
    }
    event.preventDefault();
  }
}

// Distinct texts of a column that match, with the sum of another column.
function distinct(app: App, table: string, column: string, sum: string,
                  test: (text: string) => boolean): [string, number][] {
  const rows = app.model.table(table);
  if (!rows) return [];
  const ids = rows.raw(column);
  const sums = new Map<number, number>();
  for (let row = 0; ids && row < rows.rows; ++row) {
    const id = ids[row]!;
    sums.set(id, (sums.get(id) ?? 0) + rows.num(row, sum));
  }
  return [...sums].map(([id, value]): [string, number] =>
    [app.model.text(id), value])
    .filter(([text]) => text !== "" && test(text))
    .sort((a, b) => b[1] - a[1]);
}

// SQL and a second trace are no work of a page: the command that does it.
function commandHit(app: App, query: string): Hit | null {
  const [input = "TRACE"] = app.model.manifest.inputs;
  const file = shellLine([input]);
  const other = /^vs:\s*(\S.*)$/.exec(query)?.[1];
  const line = /^select\s/i.test(query) ? `lamina query ${file} ` +
    shellLine([query]) : other !== undefined
    ? `lamina diff ${file} ${shellLine([other])}` : "";
  return line === "" ? null : { group: "Enter copies the command", text: line,
                                detail: "", patch: {}, copies: line };
}

// Combined terms: how much they leave, at once.
function findTerms(app: App, query: string): Hit[] | null {
  const terms = parseTerms(query);
  if (!terms) return null;
  const found = resolve(app, terms);
  if (typeof found === "string")
    return [{ group: "This cannot be looked for", text: found, detail: "",
              patch: {} }];
  const words = `${count(found.events)} ` +
    (found.events === 1 ? "event" : "events");
  return [{ group: "All terms together", text: words, detail: time(found.ns),
            patch: { view: "timeline", chips: found.chips } }];
}

function find(app: App, query: string): Hit[] {
  const command = commandHit(app, query);
  if (command) return [command];
  const terms = findTerms(app, query);
  if (terms) return terms;
  const dur = /^dur\s*([<>])\s*(.+)$/.exec(query);
  if (dur) {
    const ns = parseTime(dur[2]!);
    return ns === null ? [] : [{
      group: "Length", text: `events ${dur[1] === ">" ? "above" : "below"} ` +
        time(ns), detail: "", patch: { view: "timeline",
        chips: app.only("dur", dur[1] + String(Math.round(ns))) } }];
  }
  const prefix = /^(name|op|module|shape|layer|host):\s*(.*)$/.exec(query);
  const kind = prefix?.[1] ?? "";
  const words = prefix ? prefix[2]! : query;
  const test = textTest(words);
  const hits: Hit[] = [];
  if (kind === "layer") return findLayers(app, words);
  if (kind === "shape") return findShapes(app, words);
  const add = (group: string, all: [string, number][],
               patch: (text: string) => Patch) => {
    for (const [text, ns] of all.slice(0, kMostPerGroup)) {
      hits.push({ group: `${all.length} ${group}${all.length === 1 ? "" : "s"}`,
                  text, detail: time(ns), patch: patch(text) });
    }
  };
  if (kind === "" && !/^\/.+\/$/.test(words)) {
    hits.push({ group: "Everything", text: words, detail: "in any name",
                patch: { chips: app.only("q", words) } });
  } else if (kind === "") {
    hits.push({ group: "Everything", text: words, detail: "as a pattern",
                patch: { chips: app.only("q", words) } });
  }
  if (kind === "" || kind === "name") {
    add("kernel", distinct(app, "kernels", "kernel", "kernel_time_us",
                           (text) => nameHits(text, test)),
        (text) => ({ view: "kernels", chips: app.only("name", text) }));
  }
  if (kind === "" || kind === "op") {
    add("op", distinct(app, "kernels", "op", "kernel_time_us", test),
        (text) => ({ view: "ops", chips: app.only("op", text) }));
  }
  if (kind === "" || kind === "module") {
    add("module", distinct(app, "modules", "module", "kernel_time_us",
      (text) => test(text.slice(text.lastIndexOf("/") + 1))),
        (text) => ({ view: "modules", chips: app.only("mod", text) }));
  }
  if (kind === "") {
    add("range", ranges(app, test), (text) => ({ view: "timeline",
      chips: rangeChip(app, text) }));
  }
  if (kind === "" || kind === "host") {
    const found = hostNames(app, test);
    add("host name", found.map(({ text, ns }) => [text, ns]), (text) =>
      showEvent(app, app.model.host!.uid[found.find((one) =>
        one.text === text)!.longest]!));
  }
  return hits;
}

// Names of host events that are no ranges, by the time of all of them; a hit
// leads to the longest.
function hostNames(app: App, test: (text: string) => boolean):
    { text: string; ns: number; longest: number }[] {
  const { host, hostTracks } = app.model;
  const names = new Map<number, { ns: number; longest: number }>();
  for (const track of host ? hostTracks : []) {
    if (track.kind === "ranges") continue;
    for (let row = track.begin; row < track.end; ++row) {
      const id = host!.name[row]!;
      const known = names.get(id);
      if (!known) {
        names.set(id, { ns: host!.dur[row]!, longest: row });
        continue;
      }
      known.ns += host!.dur[row]!;
      if (host!.dur[row]! > host!.dur[known.longest]!) known.longest = row;
    }
  }
  return [...names].map(([id, one]) => ({ ...one, text: app.model.text(id) }))
    .filter(({ text }) => test(text)).sort((a, b) => b.ns - a.ns);
}

function eachRange(app: App, see: (row: number) => void): void {
  for (const track of app.model.hostTracks) {
    if (track.kind !== "ranges") continue;
    for (let row = track.begin; row < track.end; ++row) see(row);
  }
}

function ranges(app: App, test: (text: string) => boolean):
    [string, number][] {
  const { host } = app.model;
  const sums = new Map<number, number>();
  if (host) eachRange(app, (row) => {
    const id = host.name[row]!;
    sums.set(id, (sums.get(id) ?? 0) + host.dur[row]!);
  });
  return [...sums].map(([id, ns]): [string, number] => [app.model.text(id), ns])
    .filter(([text]) => test(text)).sort((a, b) => b[1] - a[1]);
}

function rangeChip(app: App, text: string): Chip[] {
  const host = app.model.host!;
  const values: string[] = [];
  eachRange(app, (row) => {
    if (values.length < 100 && app.model.text(host.name[row]!) === text &&
        host.dur[row]! > 0)
      values.push(`${host.start[row]!}..${host.start[row]! + host.dur[row]!}`);
  });
  return app.only("t", ...values);
}

function findShapes(app: App, words: string): Hit[] {
  const table = app.model.table("op_efficiency");
  const found: { row: number; ns: number }[] = [];
  const pattern = words.split(/[^0-9]+/).filter((w) => w !== "");
  for (let row = 0; table && pattern.length > 0 && row < table.rows; ++row) {
    const sizes = new Set(table.str(row, "input_dims").match(/\d+/g) ?? []);
    if (pattern.every((size) => sizes.has(size)))
      found.push({ row, ns: table.num(row, "kernel_time_us") });
  }
  found.sort((a, b) => b.ns - a.ns);
  const key = (row: number) => table!.str(row, "first_uid");
  const all: Hit[] = found.slice(0, kMostPerGroup).map(({ row, ns }) => ({
    group: `${found.length} ops with this shape`,
    text: `${table!.str(row, "op")} ${shapes(table!.str(row, "input_dims"))}`,
    detail: time(ns), patch: { view: "ops",
      chips: app.only("row", key(row)) } }));
  if (found.length > 1) {
    all.unshift({ group: `${found.length} ops with this shape`,
      text: "all of them", detail: "", patch: { view: "ops", 
        chips: app.only("row", ...found.map((f) => key(f.row))) } });
  }
  return all;
}

function findLayers(app: App, words: string): Hit[] {
  const range = /^(\d+)(?:-(\d+))?$/.exec(words);
  const layers = app.model.table("layers");
  if (!range || !layers) return [];
  const from = Number(range[1]);
  const to = Number(range[2] ?? range[1]);
  const stacks = new Map<string, string[]>();
  for (let row = 0; row < layers.rows; ++row) {
    const layer = layers.num(row, "layer");
    if (layer < from || layer > to) continue;
    const stack = layers.str(row, "stack");
    const uids = stacks.get(stack) ?? [];
    uids.push(layers.str(row, "first_uid"));
    stacks.set(stack, uids);
  }
  return [...stacks].map(([stack, uids]) => ({
    group: "Layers", text: `${stack} ${words}`, detail: `${uids.length} layers`,
    patch: { view: "layers", chips: app.only("layer", ...uids) },
  }));
}
