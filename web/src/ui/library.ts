// SPDX-License-Identifier: Apache-2.0
//
// The list of traces: search, sort, open with progress, two of them to compare.

import { ask, Refused } from "../data/live";
import { h } from "./dom";
import { bytes, clean, count, percent, time } from "./format";

export interface Listed {
  id: string;
  kind: "trace" | "comparison";
  name: string;
  ending?: string;
  bytes?: number;
  changed_ms?: number;
  stale?: boolean;
  state: "closed" | "waiting" | "opening" | "open" | "failed";
  done?: number;
  total?: number;
  error?: string;
  facts?: { findings?: string; format?: string; devices?: string; events?: number;
            steps?: number; wall_ns?: number; busy_ns?: number;
            verdict?: string };
}

// Its page has a program of its own, and no SQL.
const isSnapshot = (row: Listed) => row.facts?.format === "memory snapshot";

interface Column {
  key: string;
  title: string;
  numeric?: boolean;
  value(row: Listed): string | number | null;
  text?(row: Listed): string;
}

const kColumns: Column[] = [
  { key: "name", title: "Trace", value: (row) => row.name },
  { key: "size", title: "Size", numeric: true, value: (row) => row.bytes ?? null,
    text: (row) => row.bytes === undefined ? "" : bytes(row.bytes) },
  { key: "format", title: "Format",
    value: (row) => row.facts?.format ?? row.ending ?? "" },
  { key: "device", title: "Device", value: (row) => row.facts?.devices ?? "" },
  { key: "steps", title: "Steps", numeric: true,
    value: (row) => row.facts?.steps ?? null,
    text: (row) => row.facts?.steps === undefined ? ""
      : count(row.facts.steps) },
  { key: "wall", title: "Window", numeric: true,
    value: (row) => row.facts?.wall_ns ?? null,
    text: (row) => row.facts?.wall_ns === undefined ? ""
      : time(row.facts.wall_ns) },
  { key: "busy", title: "Busy", numeric: true,
    value: (row) => row.facts?.wall_ns
      ? row.facts.busy_ns! / row.facts.wall_ns : null,
    text: (row) => row.facts?.wall_ns
      ? percent(row.facts.busy_ns!, row.facts.wall_ns) : "" },
  { key: "verdict", title: "Verdict",
    value: (row) => row.facts?.verdict ?? row.error ?? "" },
];

const kMostRows = 500;   // drawn at a time
const kSoonMs = 400;     // while something is on its way
const kLaterMs = 4000;

export class Library {
  readonly root: HTMLElement;
  private readonly body = h("tbody");
  private readonly heads = h("tr");
  private readonly foot = h("p", { class: "muted", role: "status" });
  private readonly search = h("input", { type: "search", "data-k": "find",
    placeholder: "Find a trace", "aria-label": "Find a trace",
    input: () => this.draw() });
  private readonly compare = h("button", { "data-k": "compare", disabled: true,
    click: () => void this.startCompare() }, "Compare");
  private rows: Listed[] = [];
  private chosen: string[] = [];
  private sort = "";
  private seen = "";
  private timer = 0;
  private on = false;

  constructor(private readonly fail: (error: unknown) => void) {
    this.root = h("div", {},
      h("header", {}, h("span", { class: "brand" }, "lamina"),
        h("span", { class: "file" }, "traces"), this.search, this.compare),
      h("main", { class: "library" }, h("h1", { class: "offscreen" },
        "Traces of lamina serve"),
        h("table", {}, h("thead", {}, this.heads), this.body), this.foot));
  }

  start(): void {
    this.on = true;
    void this.refresh();
  }
  stop(): void {
    this.on = false;
    clearTimeout(this.timer);
  }

  private async refresh(): Promise<void> {
    clearTimeout(this.timer);
    try {
      const text = await (await ask("/api/v1/traces")).text();
      if (!this.on) return;
      if (text !== this.seen) {
        this.seen = text;
        this.rows = (JSON.parse(text) as { traces: Listed[] }).traces;
        this.chosen = this.chosen.filter((id) =>
          this.rows.some((row) => row.id === id));
        this.draw();
      }
    } catch (error) {
      this.stop();
      this.fail(error);
      return;
    }
    const soon = this.rows.some((row) =>
      row.state === "opening" || row.state === "waiting");
    this.timer = setTimeout(() => void this.refresh(),
                            soon ? kSoonMs : kLaterMs);
  }

  private async act(path: string, body: unknown): Promise<void> {
    try {
      await ask(path, body);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.foot.textContent = `${error.message}. ${error.hint}`;
      return;
    }
    await this.refresh();
  }
  private async startCompare(): Promise<void> {
    const [a, b] = this.chosen;
    this.chosen = [];
    await this.act("/api/v1/compare", { a, b });
    this.draw();
  }

  private draw(): void {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let rows = this.rows.filter((row) => {
      const text = [row.name, ...kColumns.map((c) => String(c.value(row) ?? ""))]
        .join("\n").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const column = kColumns.find((c) => c.key === this.sort.slice(0, -1));
    if (column) {
      const sign = this.sort.endsWith("-") ? -1 : 1;
      const empty = (v: unknown) => v === null || v === "";
      rows = rows.map((row) => ({ row, value: column.value(row) }))
        .sort((x, y) => empty(x.value) || empty(y.value)
          ? Number(empty(x.value)) - Number(empty(y.value))
          : sign * (x.value! < y.value! ? -1 : x.value! > y.value! ? 1 : 0))
        .map((one) => one.row);
    }
    const focused = document.activeElement?.getAttribute("data-k");
    this.heads.replaceChildren(h("th", { scope: "col" },
      h("span", { class: "offscreen" }, "Chosen")),
      ...kColumns.map((c) => h("th", { scope: "col",
        class: c.numeric ? "num" : "",
        "aria-sort": c !== column ? undefined
          : this.sort.endsWith("-") ? "descending" : "ascending" },
        h("button", { class: "plain", "data-k": "sort-" + c.key, click: () => {
          const first = c.numeric ? "-" : "+";
          const other = c.numeric ? "+" : "-";
          this.sort = c.key + (this.sort === c.key + first ? other : first);
          this.draw();
        } }, c.title))),
      h("th", { scope: "col" }, "State"));
    this.body.replaceChildren(...rows.slice(0, kMostRows)
      .map((row) => this.drawRow(row)));
    const shown = Math.min(rows.length, kMostRows);
    this.foot.textContent = `${count(shown)} of ${count(this.rows.length)} ` +
      `shown${rows.length > shown ? "; search for the others" : ""}`;
    this.compare.disabled = this.chosen.length !== 2;
    if (focused) {
      this.root.querySelector<HTMLElement>(`[data-k="${CSS.escape(focused)}"]`)
        ?.focus();
    }
    document.documentElement.dataset.ready = "library";
  }

  private drawRow(row: Listed): HTMLElement {
    const box = h("input", { type: "checkbox", "data-k": "box-" + row.id,
      "aria-label": "Choose " + clean(row.name),
      disabled: row.kind !== "trace", change: () => {
        this.chosen = this.chosen.filter((id) => id !== row.id);
        if (box.checked) this.chosen = [...this.chosen, row.id].slice(-2);
        this.draw();
      } });
    box.checked = this.chosen.includes(row.id);
    const name = clean(row.name);
    return h("tr", { "data-name": name, "data-state": row.state },
      h("td", {}, row.kind === "trace" ? box : null),
      ...kColumns.map((column) => h("td",
        { class: (column.numeric ? "num " : "") + "c-" + column.key +
          (column.key === "verdict" && row.error ? " warn" : "") },
        column.key === "name" && row.state === "open"
          ? h("a", { href: (isSnapshot(row) ? "/m/" : "/t/") + row.id,
                     "data-k": "report-" + row.id }, name)
          : clean(column.text?.(row) ?? String(column.value(row) ?? ""), 600))),
      h("td", { class: "state" }, ...this.drawState(row)));
  }

  private drawState(row: Listed): (Node | string)[] {
    const button = (what: string, path: string) =>
      h("button", { "data-k": `${path}-${row.id}`, click: () =>
        void this.act(`/api/v1/traces/${row.id}/${path}`, {}) }, what);
    if (row.state === "opening") {
      const bar = h("progress", { "aria-label": "Reading" });
      if (row.total) {
        bar.max = row.total;
        bar.value = Math.min(row.done ?? 0, row.total);
      }
      return [bar, button("Cancel", "close")];
    }
    if (row.state === "waiting")
      return ["waiting ", button("Cancel", "close")];
    if (row.state === "open") {
      return [...row.facts?.findings === "coming" ? ["findings follow "] : [],
              ...isSnapshot(row) ? [] : [h("a", { href: "#sql/" + row.id,
                "data-k": "sql-" + row.id }, "SQL"), " "],
              ...row.stale ? [button("Open again", "open")] : [],
              button("Close", "close")];
    }
    return [button(row.state === "failed" ? "Try again" : "Open", "open"),
            ...row.kind === "comparison" ? [button("Remove", "close")] : []];
  }
}
