// SPDX-License-Identifier: Apache-2.0
//
// A heat map on one sequential scale: rows are ranks, columns are matched
// collectives or steps. What is missing is hatched, never zero; where a rank
// takes no part there is a thin line. Where rows or columns are thinner than a
// pixel the largest value of a pixel is drawn.

import { ink } from "../ui/colors";
import { prepare } from "./canvas";

// The value of a cell that is empty for a good reason.
export const kNoPart = -1;

export interface HeatMap {
  rows: string[];
  columns: string[];
  values: Float64Array;      // row-major; NaN is missing, or kNoPart
  missing: string;           // what a missing cell means
}

export interface HeatPlace {
  left: number;
  top: number;
  width: number;   // of the cells
  height: number;
  perRow: number;  // rows of one drawn row
  perColumn: number;
  drawnRows: number;
  drawnColumns: number;
}

const kLeft = 78;
const kTop = 18;
const kMostRows = 512;
const kScale = ["q0", "q1", "q2", "q3", "q4"] as const;

function channels(color: string): number[] {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
}

// Where the cells are, for a drawing of this width.
export function placeHeat(map: HeatMap, width: number): HeatPlace {
  const cells = Math.max(1, width - kLeft - 2);
  const perColumn = Math.max(1, Math.ceil(map.columns.length / cells));
  const perRow = Math.max(1, Math.ceil(map.rows.length / kMostRows));
  const drawnRows = Math.ceil(map.rows.length / perRow);
  const tall = drawnRows <= 16 ? 20 : drawnRows <= 64 ? 10
    : drawnRows <= 160 ? 4 : 2;
  return { left: kLeft, top: kTop, width: cells, height: drawnRows * tall,
           perRow, perColumn, drawnRows,
           drawnColumns: Math.ceil(map.columns.length / perColumn) };
}

// The largest value of a drawn cell; NaN where some are missing and none has
// one, kNoPart where none takes part.
export function heatCell(map: HeatMap, place: HeatPlace, r: number,
                         c: number): number {
  let most = kNoPart;
  let missing = false;
  const columns = map.columns.length;
  for (let row = r * place.perRow; row < Math.min(map.rows.length,
       (r + 1) * place.perRow); ++row) {
    for (let column = c * place.perColumn; column < Math.min(columns,
         (c + 1) * place.perColumn); ++column) {
      const value = map.values[row * columns + column]!;
      if (Number.isNaN(value)) missing = true;
      else if (value > most) most = value;
    }
  }
  return missing && most === kNoPart ? NaN : most;
}

export function heatTop(map: HeatMap): number {
  let top = 1;
  for (const value of map.values) if (value > top) top = value;
  return top;
}

export function drawHeat(canvas: HTMLCanvasElement, map: HeatMap,
                         width: number, chosen: number): HeatPlace {
  const place = placeHeat(map, width);
  const context = prepare(canvas, width, place.top + place.height + 8);
  context.fillStyle = ink("page");
  context.fillRect(0, 0, width, place.top + place.height + 8);
  const scale = kScale.map((name) => channels(ink(name)));
  const top = heatTop(map);
  const wide = place.width / place.drawnColumns;
  const tall = place.height / place.drawnRows;
  const tile = hatching();
  // One pattern for all cells: making one costs more than a cell.
  const hatch = (tile && context.createPattern(tile, "repeat")) ??
    ink("panel");
  for (let r = 0; r < place.drawnRows; ++r) {
    for (let c = 0; c < place.drawnColumns; ++c) {
      const value = heatCell(map, place, r, c);
      const x = place.left + c * wide;
      const y = place.top + r * tall;
      if (value === kNoPart) {
        context.fillStyle = ink("line");
        context.fillRect(x, y + tall / 2, wide, 1);
        continue;
      }
      if (Number.isNaN(value)) {
        context.fillStyle = hatch;
      } else {
        // The root spreads small waits, which are the many.
        const at = Math.sqrt(Math.max(0, value) / top) * (scale.length - 1);
        const low = Math.min(scale.length - 2, Math.floor(at));
        context.fillStyle = "rgb(" + scale[low]!.map((from, i) =>
          Math.round(from + (scale[low + 1]![i]! - from) * (at - low)))
          .join(",") + ")";
      }
      context.fillRect(x, y, Math.max(1, wide - (wide > 4 ? 1 : 0)),
                       Math.max(1, tall - (tall > 4 ? 1 : 0)));
    }
  }
  context.fillStyle = ink("text");
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(14 / tall));
  for (let r = 0; r < place.drawnRows; r += every)
    context.fillText(map.rows[r * place.perRow] ?? "", 4,
                     place.top + (r + 0.5) * tall, place.left - 10);
  // Above the columns their numbers, as many as have room.
  const longest = Math.max(...map.columns.slice(-1).map((name) =>
    context.measureText(name).width), 20);
  const columnStep = Math.max(1, Math.ceil((longest + 12) / wide));
  context.fillStyle = ink("muted");
  for (let c = 0; c < place.drawnColumns; c += columnStep) {
    const x = place.left + c * wide;
    if (x + longest > width) break;
    context.fillRect(x, place.top - 4, 1, 4);
    context.fillText(map.columns[c * place.perColumn] ?? "", x + 3, 8);
  }
  if (chosen >= 0) {
    context.strokeStyle = ink("text");
    context.lineWidth = 2;
    const c = Math.floor(chosen / place.perColumn);
    context.strokeRect(place.left + c * wide - 1, place.top - 1,
                       Math.max(3, wide + 1), place.height + 2);
  }
  return place;
}

function hatching(): HTMLCanvasElement | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const context = tile.getContext("2d");
  if (!context) return null;
  context.fillStyle = ink("page");
  context.fillRect(0, 0, 6, 6);
  context.strokeStyle = ink("muted");
  for (const shift of [-6, 0, 6]) {
    context.beginPath();
    context.moveTo(shift, 6);
    context.lineTo(shift + 6, 0);
    context.stroke();
  }
  return tile;
}
