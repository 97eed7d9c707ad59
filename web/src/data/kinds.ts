// SPDX-License-Identifier: Apache-2.0
//
// Kinds of layers: the rows of layer_types. Layers of a kind have the same
// kernels; kinds of one stack have their kernels in common places.

import type { Model, Table } from "./model";

export interface Kind {
  key: string;        // in the address
  stack: string;
  module: string;     // path above its layers: stacks of one class are two
  variant: string;
  type: string;
  stage: string;
  layers: number;     // of the whole trace
  time: number;       // ns
}

function keyAt(table: Table, row: number): string {
  return ["stack", "variant", "type", "stage", "module"]
    .map((column) => table.str(row, column)).join("/").replace(/\/$/, "");
}

export function sameStack(a: Kind, b: Kind): boolean {
  return a.stack === b.stack && a.module === b.module;
}

export function allKinds(model: Model): Kind[] {
  const table = model.table("layer_types");
  if (!table) return [];
  return Array.from({ length: table.rows }, (_, row): Kind => ({
    key: keyAt(table, row), stack: table.str(row, "stack"),
    module: table.str(row, "module"), type: table.str(row, "type"),
    variant: table.str(row, "variant"), stage: table.str(row, "stage"),
    layers: table.num(row, "layers"), time: table.num(row, "kernel_time_us") }));
}

// Those that have another kind in their stack, by time.
export function kindsOf(model: Model): Kind[] {
  const kinds = allKinds(model);
  return kinds.filter((kind) => kinds.some((other) => other !== kind &&
                                           sameStack(kind, other)));
}

// The kind of a row of the layers; of stacks of one class that with the
// closest module above.
export function kindOfLayer(kinds: Kind[], layers: Table, row: number):
    Kind | null {
  const path = layers.str(row, "module");
  const fits = kinds.filter((kind) =>
    (["stack", "variant", "type", "stage"] as const).every((column) =>
      kind[column] === layers.str(row, column)) &&
    (kind.module === "" || path.startsWith(kind.module + "/")));
  return fits.sort((a, b) => b.module.length - a.module.length)[0] ?? null;
}

// Layers of a kind, shortest first. Those that the recording cut say little
// of how long a layer is.
export function rowsOfKind(kinds: Kind[], kind: Kind, layers: Table): number[] {
  const rows = Array.from({ length: layers.rows }, (_, row) => row)
    .filter((row) => kindOfLayer(kinds, layers, row) === kind);
  const whole = rows.filter((row) => layers.at(row, "partial") !== 1);
  return (whole.length > 0 ? whole : rows).sort((a, b) =>
    layers.num(a, "kernel_time_us") - layers.num(b, "kernel_time_us") || a - b);
}

// The kind to stand beside another: of the same stage if there is one.
export function partnerOf(kinds: Kind[], of: Kind): Kind {
  const others = kinds.filter((k) => sameStack(k, of) && k !== of);
  return others.find((k) => k.stage === of.stage) ?? others[0]!;
}

// Rows of variant_kernels of a kind, by place.
export function placesOf(model: Model, kind: Kind): number[] {
  const table = model.table("variant_kernels");
  const rows: number[] = [];
  for (let row = 0; table && row < table.rows; ++row)
    if (keyAt(table, row) === kind.key) rows.push(row);
  return rows;
}

// Layers of the kind that hold events of the mask.
export function layersOf(model: Model, kind: Kind,
                         mask: Uint8Array | null): number {
  const layers = model.table("layers");
  const device = model.device;
  if (!layers || !device || mask === null || device.merged) return kind.layers;
  const kinds = allKinds(model);
  const seen = new Uint8Array(layers.rows + 1);
  for (let i = 0; i < device.count; ++i)
    if (mask[i]) seen[device.layer[i]!] = 1;
  let count = 0;
  for (let row = 0; row < layers.rows; ++row)
    if (seen[row + 1] && kindOfLayer(kinds, layers, row)?.key === kind.key)
      ++count;
  return count;
}
