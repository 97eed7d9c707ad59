// SPDX-License-Identifier: Apache-2.0
//
// "Copy as command": the lamina command that gives the rows of the view. The
// file says which commands there are and which tables each writes; what a
// command cannot hold is said in words, never left out in silence.

import { conditionsOf, spanText } from "../data/conditions";
import type { PageCommand } from "../data/manifest";
import { shellLine } from "../data/quote";
import type { Chip } from "../data/state";
import { needsSingles } from "../data/thinned";
import type { App } from "./app";
import { chipName } from "./chips";
import { copyText } from "./dom";

// What a view shows.
interface Shown {
  tables: string[];
  filtered: boolean;   // its rows follow the chips
  without: string[];   // what the rows of the view have and the table has not
}

export interface Command {
  text: string;        // empty: there is none
  words: string;       // why, or what it leaves out
}

const kPart = "lamina-part.json.gz";
// Shells take 128 kB in a word and little more in a line.
const kMostLength = 100_000;

function set(app: App, ...options: [string, string][]): string[] {
  return options.filter(([key]) => app.option(key) !== "")
    .map(([, words]) => words);
}

function opsShown(app: App): Shown {
  const by = app.option("ops.by");
  const typed = set(app, ["ops.q", "the names typed above the table"],
                    ["ops.where", "the numbers typed above the table"]);
  if (by === "module")
    return { tables: ["modules"], filtered: true, without: typed };
  const sums: Record<string, string> = { op: "op", dims: "shapes",
                                         family: "family" };
  return { tables: ["op_efficiency"], filtered: true, without: sums[by]
    ? [`the sums by ${sums[by]}`, ...typed] : typed };
}

const kShown: Record<string, (app: App) => Shown> = {
  overview: () => ({ tables: ["gpu_timeline", "gaps"], filtered: false,
                     without: [] }),
  timeline: () => ({ tables: [], filtered: true, without: [] }),
  layers: (app) => ({ tables: ["layers"], filtered: false,
    without: set(app, ["layers.pass", "the choice of a pass"]) }),
  modules: (app) => ({ tables: ["modules"], filtered: true,
    without: set(app, ["modules.root", "the zoom"]) }),
  ops: opsShown,
  roofline: (app) => ({ tables: ["op_efficiency"], filtered: true,
    without: set(app, ["roof.min", "the least share"],
                 ["roof.by", "the single calls"]) }),
  kernels: () => ({ tables: ["kernels"], filtered: true, without: [] }),
  steps: (app) => ({ tables: ["steps", "step_summary"], filtered: false,
    without: set(app, ["steps.pick", "the comparison"]) }),
  host: () => ({ tables: ["host_ops"], filtered: false,
                 without: ["the stacks"] }),
  ranks: () => ({ tables: ["ranks", "collectives", "collective_waits"],
                  filtered: false, without: [] }),
  diff: () => ({ tables: ["diff_totals", "diff_causes", "diff_ops",
    "diff_kernels", "diff_by", "diff_calls", "diff_moved"], filtered: false,
    without: [] }),
  fusions: () => ({ tables: ["census_rules", "near_misses", "candidates",
    "pipeline", "review"], filtered: false, without: [] }),
  graph: () => ({ tables: ["graph_files", "graph_layers", "graph_nodes",
    "graph_edges"], filtered: false, without: ["the drawing"] }),
  health: () => ({ tables: ["trace_health"], filtered: false, without: [] }),
  tables: (app) => ({ tables: [app.option("tables.name") ||
    (app.model.manifest.tables.find((t) => t.rows > 0)?.name ?? "")],
    filtered: false,
    without: set(app, ["tables.where", "the choice of rows"]) }),
};

function filterWords(chip: Chip): string {
  return `the filter by ${chipName(chip)}`;
}

function none(words: string): Command { return { text: "", words }; }

// The words of the sentence that is said after copying.
function leftOutWords(parts: string[]): string {
  return parts.length > 0 ? ` It leaves out ${parts.join(", ")}.` : "";
}

function asCommand(lines: (string[])[], joint: string,
                   words: string): Command {
  const texts = lines.map((line) => shellLine(["lamina", ...line]));
  if (texts.includes(null)) {
    return none("No command can hold the name of the input: it has bytes " +
                "that are no text.");
  }
  const text = texts.join(joint);
  return text.length > kMostLength
    ? none("The command would be too long for a shell.") : { text, words };
}

// Rows of whole tables, each by the command that writes it.
function wholeTables(app: App, shown: Shown, leftOut: string[]): Command {
  const { commands } = app.model.manifest;
  const lines: string[][] = [];
  for (const { words, tables } of commands) {
    const wanted = shown.tables.filter((name) => tables.includes(name));
    if (wanted.length > 0)
      lines.push([...words, "--only", wanted.join(","), "--format", "csv"]);
  }
  if (lines.length > 0)
    return asCommand(lines, " && ", leftOutWords(leftOut));
  const own = commandOf(app, app.model.manifest.command);
  return own && own.tables.length === 0
    ? asCommand([own.words], "", leftOutWords(leftOut))
    : none("No command writes what this view shows.");
}

function commandOf(app: App, name: string): PageCommand | undefined {
  return app.model.manifest.commands.find((c) => c.name === name);
}

// The page counts the part inside of a range, a slice holds whole events.
function edgeWords(app: App): string {
  const { device } = app.model;
  const { mask } = app.selection;
  const { dur } = app.filter;
  for (let i = 0; device && dur && dur !== device.dur && i < device.count; ++i) {
    if ((!mask || mask[i]) && dur[i] !== device.dur[i])
      return " Events that cross the edge of the range count whole there.";
  }
  return "";
}

// A trace with the events of the filter, and the tables of that.
function ofSlice(app: App, shown: Shown, slice: PageCommand): Command {
  const { chips, zoom, view } = app.state;
  if (chips.length > 0 && app.selection.count === 0)
    return none("Nothing passes the filter: there is no such trace.");
  const { texts, leftOut } = conditionsOf(chips, slice.where);
  const line = [...slice.words,
                ...texts.flatMap((text) => ["--where", text])];
  if (view === "timeline" && (zoom || texts.length === 0)) {
    line.push("--time", zoom ? spanText(Math.round(zoom[0]),
                                        Math.round(zoom[1])) : "..");
  }
  const without = [...shown.without, ...leftOut.map(filterWords)];
  const single = !app.filter.complete &&
    chips.some((c) => needsSingles(app.model.thinned, c.kind))
    ? " It counts all events, this page only the single ones that it holds."
    : "";
  const words = leftOutWords(without) + single + edgeWords(app);
  line.push("-o", kPart);
  if (view === "timeline") return asCommand([line], "", words);
  if (texts.length === 0) return wholeTables(app, shown, without);
  const report = commandOf(app, "report")!.words.slice();
  report[1] = kPart;
  return asCommand([line, [...report, "--only", shown.tables.join(","),
                           "--format", "csv"]], " >&2 && ", words);
}

// What stands for a name in a redacted page, with the extension of a file.
const kToken = /\b(?:path-[0-9a-f]{8}\/)?(?:path|file|host|user)-[0-9a-f]{8}(?:\.\w+)*/g;

// What to change in a command of a redacted page, which has no names to run it
// with.
function tokenWords(app: App, text: string): string {
  const { inputs, redacted } = app.model.manifest;
  const tokens = redacted ? [...new Set(text.match(kToken) ?? [])] : [];
  if (tokens.length === 0) return "";
  const files = tokens.filter((token) => inputs.includes(token));
  const others = tokens.filter((token) => !inputs.includes(token));
  const what = [
    ...files.length > 0 ? [`${files.join(", ")} by the path of the trace`] : [],
    ...others.length > 0 ? [`${others.join(", ")} by the ` +
      (others.length > 1 ? "names that they stand" : "name that it stands") +
      " for"] : []];
  return " It does not run as it is, this page is redacted: replace " +
    `${what.join(" and ")}.`;
}

export function commandFor(app: App): Command {
  const command = asOfPage(app);
  return { ...command,
           words: command.words + tokenWords(app, command.text) };
}

// With the names that the page has.
function asOfPage(app: App): Command {
  const { chips, selected, zoom, view } = app.state;
  if (app.model.manifest.commands.length === 0) {
    return none("This page was made from a pipe: there is no file for a " +
                "command to read.");
  }
  const shown = kShown[view]!(app);
  const slice = commandOf(app, "slice");
  if (view === "timeline" && selected !== "" && chips.length === 0 && !zoom) {
    const event = commandOf(app, "event");
    if (event)
      return asCommand([[...event.words, "--uid", selected]], "", "");
  }
  if (slice && shown.filtered && (chips.length > 0 || view === "timeline"))
    return ofSlice(app, shown, slice);
  if (view === "timeline")
    return none("lamina slice cannot cut what this page was made from.");
  return wholeTables(app, shown, shown.filtered ? [...shown.without,
    ...chips.map(filterWords)] : shown.without);
}

export async function copyCommand(app: App): Promise<void> {
  const { text, words } = commandFor(app);
  app.say(text === "" ? words : await copyText(text)
    ? `Command copied.${words}` : "The browser did not allow to copy");
}
