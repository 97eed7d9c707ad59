// SPDX-License-Identifier: Apache-2.0
//
// Kinds of layers: the rows of layer_types. Layers of a kind have the same
// kernels; kinds of one stack have their kernels in common places.

import type { Model, Table } from "./model";

export interface Kind {
  key: string;        // in the address
  stack: string;
  variant: string;
  stage: string;
  layers: number;     // of the whole trace
  time: number;       // ns
}

function keyAt(table: Table, row: number): string {
  return ["stack", "variant", "type", "stage"]
    .map((column) => table.str(row, column)).join("/");
}

// Those that have another kind in their stack, by time.
export function kindsOf(model: Model): Kind[] {
  const table = model.table("layer_types");
  if (!table) return [];
  const kinds = Array.from({ length: table.rows }, (_, row): Kind => ({
    key: keyAt(table, row), stack: table.str(row, "stack"),
    variant: table.str(row, "variant"), stage: table.str(row, "stage"),
    layers: table.num(row, "layers"), time: table.num(row, "kernel_time_us") }));
  return kinds.filter((kind) => kinds.some((other) => other !== kind &&
                                           other.stack === kind.stack));
}

// The kind to stand beside another: of the same stage if there is one.
export function partnerOf(kinds: Kind[], of: Kind): Kind {
  const others = kinds.filter((k) => k.stack === of.stack && k !== of);
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
  const seen = new Uint8Array(layers.rows + 1);
  for (let i = 0; i < device.count; ++i)
    if (mask[i]) seen[device.layer[i]!] = 1;
  let count = 0;
  for (let row = 0; row < layers.rows; ++row)
    if (seen[row + 1] && keyAt(layers, row) === kind.key) ++count;
  return count;
}
