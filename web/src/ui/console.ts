// SPDX-License-Identifier: Apache-2.0
//
// SQL over an opened trace: a query, its result as a table, as CSV and as bars,
// and queries that this browser keeps.

import { ask, Refused } from "../data/live";
import { copyText, h, svg } from "./dom";
import { clean, count } from "./format";
import type { Listed } from "./library";

interface Result {
  tables: { columns: { name: string; type: "text" | "int" | "real" }[];
            rows: (string | number | boolean | null)[][];
            total_rows: number }[];
  elapsed_ms: number;
}
interface Saved { name: string; sql: string; }

const kStart = "SELECT name, count(*) AS calls, sum(dur_ns) AS ns\n" +
  "FROM kernel GROUP BY name ORDER BY ns DESC LIMIT 20";
const kKept = "lamina-queries";
const kMostKept = 200;
const kMostBars = 60;
const kMostRows = 2000;  // that are drawn

function kept(): Saved[] {
  try {
    const list = JSON.parse(localStorage.getItem(kKept) ?? "[]") as unknown;
    if (!Array.isArray(list)) return [];
    return (list as Saved[]).filter((one) => typeof one?.name === "string" &&
      typeof one.sql === "string").slice(0, kMostKept);
  } catch {
    return [];
  }
}

// By RFC 4180; numbers as they came.
export function csv(table: Result["tables"][number]): string {
  const cell = (value: unknown) => {
    const text = value === null ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return [table.columns.map((c) => c.name), ...table.rows]
    .map((row) => row.map(cell).join(",") + "\n").join("");
}

export class Console {
  readonly root: HTMLElement;
  private readonly text = h("textarea", { rows: 8, spellcheck: "false",
    "data-k": "sql", "aria-label": "Query", keydown: (event: KeyboardEvent) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        void this.run();
      }
    } });
  private readonly says = h("p", { role: "status", class: "muted" });
  private readonly out = h("div", { class: "results-of-query" });
  private readonly saved = h("select", { "data-k": "saved",
    "aria-label": "Saved queries", change: () => {
      const found = kept().find((one) => one.name === this.saved.value);
      if (found) this.text.value = found.sql;
    } });
  private readonly name = h("span", { class: "file" });
  private running: AbortController | null = null;

  constructor(private readonly id: string) {
    this.text.value = kStart;
    const button = (key: string, title: string, click: () => void) =>
      h("button", { "data-k": key, click }, title);
    this.root = h("div", {},
      h("header", {}, h("a", { class: "brand", href: "#" }, "lamina"),
        this.name, h("a", { href: "/t/" + id, "data-k": "report" }, "Report")),
      h("main", { class: "console" },
        h("h1", { class: "offscreen" }, "SQL over a trace"), this.text,
        h("p", { class: "row" },
          button("run", "Run", () => void this.run()),
          button("cancel", "Cancel", () => this.running?.abort()),
          button("save", "Save", () => this.save()),
          this.saved,
          button("forget", "Remove", () => this.forget()),
          button("tables", "Tables", () => {
            this.text.value = "SELECT name, kind, doc FROM lamina_tables";
            void this.run();
          })),
        this.says, this.out));
    this.drawSaved();
    void this.describe();
    document.documentElement.dataset.ready = "sql";
  }
  stop(): void { this.running?.abort(); }

  private async describe(): Promise<void> {
    try {
      const row = await (await ask(`/api/v1/traces/${this.id}`)).json() as
        Listed;
      this.name.textContent = clean(row.name);
      if (row.state !== "open") this.say("The trace is not open: open it in " +
                                         "the list of traces first.", true);
    } catch (error) { this.refuse(error); }
  }

  private say(text: string, bad = false): void {
    this.says.textContent = text;
    this.says.className = bad ? "warn" : "muted";
  }
  private refuse(error: unknown): void {
    if (!(error instanceof Refused)) throw error;
    this.say([error.message, error.hint].filter(Boolean).join("\n"), true);
  }

  private async run(): Promise<void> {
    this.running?.abort();
    const running = new AbortController();
    this.running = running;
    delete document.documentElement.dataset.ready;
    this.out.replaceChildren();
    this.say("running");
    try {
      const result = await (await ask(`/api/v1/traces/${this.id}/query`,
        { sql: this.text.value, max_rows: 10000 }, running.signal)).json() as
        Result;
      if (running !== this.running) return;
      this.say(result.tables.length === 0 ? "no result"
        : `${result.elapsed_ms} ms`);
      this.out.replaceChildren(...result.tables.map((t) => this.draw(t)));
    } catch (error) {
      if (running !== this.running) return;
      if (running.signal.aborted) this.say("ended");
      else this.refuse(error);
    }
    document.documentElement.dataset.ready = "sql";
  }

  private draw(table: Result["tables"][number]): HTMLElement {
    const rows = table.rows.slice(0, kMostRows);
    const got = table.rows.length;
    const chart = h("div", { class: "chart" });
    return h("section", {},
      h("p", { class: "row" },
        `${count(got)} ${got === 1 ? "row" : "rows"}` +
        (table.total_rows > got ? ` of ${count(table.total_rows)}` : "") +
        (got > rows.length ? `; ${count(rows.length)} are drawn` : ""), " ",
        h("button", { "data-k": "csv", click: () => void copyText(csv(table))
          .then((done) => this.say(done ? "copied as CSV"
            : "the browser did not allow to copy")) }, "Copy CSV"),
        h("button", { "data-k": "chart", click: () => {
          if (chart.firstChild) chart.replaceChildren();
          else chart.replaceChildren(bars(table));
        } }, "Chart")),
      chart,
      h("table", {},
        h("thead", {}, h("tr", {}, ...table.columns.map((c) =>
          h("th", { scope: "col", class: c.type === "text" ? "" : "num" },
            clean(c.name))))),
        h("tbody", {}, ...rows.map((row) => h("tr", {},
          ...row.map((value, i) => h("td",
            { class: table.columns[i]!.type === "text" ? "" : "num",
              title: typeof value === "string" && value.length > 300
                ? clean(value, 2000) : undefined },
            value === null ? h("span", { class: "muted" }, "null")
              : clean(String(value)))))))));
  }

  private drawSaved(): void {
    this.saved.replaceChildren(h("option", { value: "" }, "Saved queries"),
      ...kept().map((one) => h("option", { value: one.name },
                               clean(one.name, 60))));
  }
  private keep(list: Saved[]): void {
    try {
      localStorage.setItem(kKept, JSON.stringify(list));
    } catch {
      this.say("the browser keeps no more", true);
    }
    this.drawSaved();
  }
  private save(): void {
    const sql = this.text.value.trim();
    if (sql === "") return;
    // A first line that is a comment names it.
    const name = sql.split("\n")[0]!.replace(/^--\s*/, "").slice(0, 100);
    this.keep([{ name, sql }, ...kept().filter((one) => one.name !== name)]
      .slice(0, kMostKept));
    this.saved.value = name;
    this.say(`saved as "${clean(name, 60)}"; a first line "-- NAME" names it`);
  }
  private forget(): void {
    this.keep(kept().filter((one) => one.name !== this.saved.value));
  }
}

// The last column of numbers as bars, labelled by the first of texts.
function bars(table: Result["tables"][number]): Element {
  const number = (v: unknown) => v === null ? NaN : Number(v);
  const value = table.columns.map((c) => c.type !== "text").lastIndexOf(true);
  const label = table.columns.findIndex((c) => c.type === "text");
  const rows = table.rows.slice(0, kMostBars)
    .filter((row) => Number.isFinite(number(row[value])));
  if (value < 0 || rows.length === 0)
    return h("p", { class: "muted" }, "No column of numbers to draw.");
  const [height, left, width] = [20, 290, 860];
  const values = rows.map((row) => number(row[value]));
  const least = Math.min(0, ...values);
  const most = Math.max(0, ...values);
  const scale = (width - left - 90) / (most - least || 1);
  const zero = left - least * scale;
  return svg("svg", { viewBox: `0 0 ${width} ${rows.length * height + 22}`,
                      role: "img", class: "bars", "aria-label":
                      `${clean(table.columns[value]!.name)} as bars` },
    svg("text", { x: left, y: 14, class: "axis" },
        clean(table.columns[value]!.name)),
    ...rows.flatMap((row, i) => {
      const y = 22 + i * height;
      const v = values[i]!;
      const text = label < 0 ? String(i + 1) : clean(String(row[label]), 34);
      return [
        svg("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, text),
        svg("rect", { x: Math.min(zero, zero + v * scale), y: y + 2,
                      width: Math.abs(v) * scale, height: height - 4 }),
        svg("text", { x: Math.max(zero, zero + v * scale) + 5, y: y + 14 },
            clean(String(row[value])))];
    }));
}
