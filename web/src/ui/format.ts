// SPDX-License-Identifier: Apache-2.0
//
// Numbers and names for people (four digits, units) and for files (exact).

import type { TableColumn } from "../data/manifest";
import type { Cell, Table } from "../data/model";
import { shortName } from "../data/names";

// With the sign that is as wide as a digit.
function signed(text: string): string { return text.replace(/^-/, "\u2212"); }

function digits(value: number): string {
  const size = Math.abs(value);
  return signed(value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1
    : size >= 10 ? 2 : 3));
}

// "511.5 ms"; whole nanoseconds below a microsecond.
export function time(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 1e9) return digits(ns / 1e9) + " s";
  if (size >= 1e6) return digits(ns / 1e6) + " ms";
  if (size >= 1e3) return digits(ns / 1e3) + " \u00b5s";
  return ns === 0 ? "0" : signed(Math.round(ns) + " ns");
}

// "1.08 s", "86.2 ms", "489 ms": three digits, as the engine writes sentences.
export function brief(ns: number): string {
  const units: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]];
  for (const [size, unit] of units) {
    if (ns < size * 0.9995) continue;
    const value = ns / size;
    return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + " " +
      unit;
  }
  return Math.round(ns) + " ns";
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? signed((100 * part / whole).toFixed(1)) + " %" : "";
}

function scaled(value: number, units: string[], base: number): string {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) {
    value /= base;
    ++unit;
  }
  return (Number.isInteger(value) && unit === 0 ? String(value)
    : digits(value)) + units[unit];
}
export function bytes(value: number): string {
  return scaled(value, [" B", " KiB", " MiB", " GiB", " TiB"], 1024);
}
export function big(value: number): string {
  return scaled(value, ["", " k", " M", " G", " T", " P"], 1000);
}

// A number as a person reads it in a table.
export function real(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return count(value);
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2);
  return digits(value);
}

export function cell(value: Cell, column: TableColumn): string {
  if (value === null) return "";
  if (typeof value === "string") return clean(value);
  if (column.type === "time") return time(value);
  if (column.type === "bool") return value ? "yes" : "no";
  if (column.shown === "percent" || column.shown === "bar")
    return signed(value.toFixed(1)) + " %";
  if (column.shown === "bytes") return bytes(value);
  if (column.shown === "count") return big(value);
  if (column.type === "real") return real(value);
  return /(uid|offset|id|step|pass|layer|stream|device)$/.test(column.name)
    ? String(value) : count(value);
}

// Control and direction characters are shown, not obeyed; long names are cut.
export function clean(text: string, most = 300): string {
  const cut = text.length > most ? text.slice(0, most) + "\u2026" : text;
  return cut.replace(
    // eslint-disable-next-line no-control-regex
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]/gu,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// The telling part of a kernel's name. The full name stands in the tooltip and
// the panel.
export function kernelName(name: string, most = 300): string {
  return clean(shortName(name) || "(no name)", most);
}

// "[16 x 5185 x 64]" of "[[16, 5185, 64], []]".
export function shapes(json: string): string {
  let list: unknown;
  try {
    list = JSON.parse(json);
  } catch {
    return clean(json);
  }
  if (!Array.isArray(list)) return clean(json);
  const show = (item: unknown): string => {
    if (typeof item === "string") return item.replace(/^c10::/, "");
    if (!Array.isArray(item) || item.length === 0) return "";
    return item.some(Array.isArray)
      ? "(" + item.map(show).filter((s) => s !== "").join(" ") + ")"
      : "[" + item.map(String).join(" \u00d7 ") + "]";
  };
  return clean(list.map(show).filter((s) => s !== "").join(" "));
}

// Words of a column name for its head: "kernel_time_us" -> "kernel time".
export function heading(name: string): string {
  return name.replace(/_(us|ns)$/, "").replace(/_per_s$/, "/s")
    .replace(/^percent_of_roofline$/, "% of roof")
    .replace(/^percent_of_/, "% of ").replace(/^percent$/, "%")
    .replace(/_(percent|pct)$/, " %").replace(/_gb_s$/, " GB/s").replace(/_/g, " ");
}

// --- files ---

// The shortest text that reads back to the same number, as the engine's files
// write it.
function exactReal(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-4 && size < 1e16))
    return Object.is(value, -0) ? "-0" : String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

export function exact(value: Cell, column: TableColumn): string {
  if (value === null) return "";
  if (typeof value === "string") return value;
  if (column.type === "time") {
    const text = BigInt(value).toString().replace("-", "").padStart(4, "0");
    return (value < 0 ? "-" : "") + text.slice(0, -3) + "." + text.slice(-3);
  }
  if (column.type === "bool") return value ? "True" : "False";
  return column.type === "real" ? exactReal(value) : String(value);
}

function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}
// A text that a spreadsheet would run gets an apostrophe; the rule of the
// engine's CSV files.
function safeCsvField(text: string): string {
  const formula = text.length > 1 && /^[=+\-@\t\r]/.test(text) &&
    !/^[+-][0-9.eE]*$/.test(text);
  return csvField(formula ? "'" + text : text);
}

// Rows of a table as the engine writes them.
export function tableCsv(table: Table, rows: Iterable<number>): string {
  const { columns } = table.info;
  const lines = [columns.map((c) => csvField(c.name)).join(",")];
  for (const row of rows) {
    lines.push(columns.map((column, c) => {
      const text = exact(table.at(row, c), column);
      return column.type === "text" ? safeCsvField(text) : csvField(text);
    }).join(","));
  }
  return lines.join("\n") + "\n";
}

export function textCsv(head: string[], rows: string[][]): string {
  return [head, ...rows].map((row) => row.map(safeCsvField).join(","))
    .join("\n") + "\n";
}

export function markdown(head: string[], rows: string[][],
                         numeric: boolean[]): string {
  const line = (cells: string[]) => "| " + cells.map((text) =>
    clean(text, 10000).replace(/\\/g, "\\\\").replace(/\|/g, "\\|"))
    .join(" | ") + " |";
  return [line(head), "|" + numeric.map((n) => n ? "---:" : "---").join("|") +
    "|", ...rows.map(line)].join("\n") + "\n";
}
