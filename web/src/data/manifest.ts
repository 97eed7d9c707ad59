// SPDX-License-Identifier: Apache-2.0
//
// The manifest of a page: what the engine says of the tables, tracks and
// blocks in the file.

import type { Answer } from "./answer";
import type { BlockInfo } from "./decode";
import type { SeriesInfo } from "./memory";
import type { Thinned } from "./thinned";

export const kSchema = 2;

export interface Evidence {
  table: string;
  column: string;
  value: string;
  events: number[];
}

export interface Note {
  severity: "verdict" | "opportunity" | "warning" | "info";
  id: string;
  text: string;
  worth_ns?: number;
  claim: string;
  evidence: Evidence[];
}

export interface TableColumn {
  name: string;
  type: "text" | "int" | "real" | "bool" | "time";
  shown: "plain" | "percent" | "bytes" | "count" | "bar" | "hidden";
  doc: string;
  text?: 1;   // integers that a double cannot hold
  nulls?: 1;
}

export interface TableInfo {
  name: string;
  doc: string;
  rows: number;
  columns: TableColumn[];
}

// One of the traces of a page that compares some. Its events have numbers
// from `first_uid` on, and times that count from its first event are larger
// by `shift_ns` in the page.
export interface TraceInfo {
  name: string;              // A and B, or the rank
  input: string;
  first_uid: number;
  shift_ns: number;
}

export interface Lane {
  trace?: number;            // of Model.traces; none: the first
  process: string;
  device: number | null;
  stream: number | null;
  begin: number;
  end: number;
}

export interface HostTrack {
  trace?: number;
  kind: "ranges" | "modules" | "calls" | "python";
  process: string;
  thread: string;
  name: string;
  begin: number;
  end: number;
}

export interface CounterSeries {
  name: string;
  bytes: boolean;
  begin: number;  // of its rows in the block "counters"
  end: number;
}

export interface Family {
  name: string;
  group: string;
  title: string;
}

export interface DeviceFacts {
  title: string;
  source: string;
  bytes_per_s: number;
  peaks: Record<string, number>;
}

export interface TraceFacts {
  format: string;
  events: number;
  bytes: number;
  host_events: number;
  left_out: string;
  no_launchers: boolean;
  short_kernel_ns: number;
}

// A command that gives rows of the page again.
export interface PageCommand {
  name: string;
  words: string[];    // behind "lamina"
  tables: string[];   // that it writes
  where: string[];    // fields of its --where
}

export interface Manifest {
  schema: number;
  version: string;
  command: string;
  inputs: string[];
  commands: PageCommand[];  // none: not known, or the input was a pipe
  notes: Note[];
  tables: TableInfo[];
  blocks: BlockInfo[];
  redacted?: 1;
  privacy: string;           // which names of the trace the page holds
  answer?: Answer;            // of a report
  answer_lanes?: number[];    // of each device of the answer: its first lane
  trace?: TraceFacts;
  device?: DeviceFacts | null;
  families?: Family[];
  traces?: TraceInfo[];
  lanes?: Lane[];
  host_tracks?: HostTrack[];
  thinned?: Thinned;
  counters?: CounterSeries[];
  memory?: SeriesInfo[];          // of pages of memory snapshots
  memory_categories?: string[];
  graph_start?: { file?: unknown; layer?: unknown; views?: unknown };  // see layergraph.ts
}
