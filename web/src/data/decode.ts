// SPDX-License-Identifier: Apache-2.0
//
// Blocks of the file to typed arrays: base64, gzip, byte planes,
// differences. The writer is src/render/html/columns.cc. Everything read here
// is checked; what does not fit raises DamagedFile.

import { part } from "./live";

export class DamagedFile extends Error {}

export interface ColumnInfo {
  name: string;
  width: 1 | 2 | 4 | 8;
  delta?: 1;
  wide?: [number, number][];
}

export interface BlockInfo {
  name: string;
  rows: number;
  bytes: number;
  columns: ColumnInfo[];
}

export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const modern = Uint8Array as unknown as
    { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  try {
    if (modern.fromBase64) return modern.fromBase64(text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
    return bytes;
  } catch {
    throw new DamagedFile("is not base64");
  }
}

// Unpacks a gzip member; the browser checks its CRC-32.
async function unzip(bytes: Uint8Array<ArrayBuffer>, length: number):
    Promise<Uint8Array> {
  const out = new Uint8Array(length);
  let at = 0;
  try {
    const stream = new Blob([bytes]).stream()
      .pipeThrough(new DecompressionStream("gzip"));
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (at + value.length > length) throw new DamagedFile("too long");
      out.set(value, at);
      at += value.length;
    }
  } catch {
    throw new DamagedFile("cannot be unpacked");
  }
  if (at !== length) throw new DamagedFile("is too short");
  return out;
}

function unzigzag(code: number): number {
  return code % 2 === 0 ? code / 2 : -(code + 1) / 2;
}

function unplane(raw: Uint8Array, at: number, rows: number,
                 info: ColumnInfo): Column {
  // A copy: a view would keep the bytes of all columns.
  if (info.width === 1) return raw.slice(at, at + rows);
  if (info.width === 8) {
    const bytes = new Uint8Array(rows * 8);
    for (let plane = 0; plane < 8; ++plane) {
      const from = at + plane * rows;
      for (let i = 0; i < rows; ++i) bytes[i * 8 + plane] = raw[from + i]!;
    }
    return new Float64Array(bytes.buffer);
  }
  const out = info.width === 2 ? new Uint16Array(rows) : new Uint32Array(rows);
  for (let plane = 0; plane < info.width; ++plane) {
    const from = at + plane * rows;
    const shift = 8 * plane;
    for (let i = 0; i < rows; ++i) out[i]! |= raw[from + i]! << shift;
  }
  return out;
}

// Runs over the numbers of a column, writes them to `out` if there is one,
// and says the least and the most.
function replay(codes: Column, info: ColumnInfo, out: Column | null):
    [number, number] {
  const wide = info.wide ?? [];
  let next = 0;
  let value = 0;
  let least = 0;
  let most = 0;
  for (let i = 0; i < codes.length; ++i) {
    if (next < wide.length && wide[next]![0] === i) {
      value = wide[next]![1];
      ++next;
    } else if (info.delta) {
      value += unzigzag(codes[i]!);
    } else {
      value = codes[i]!;
    }
    if (value < least) least = value;
    if (value > most) most = value;
    if (out) out[i] = value;
  }
  if (next !== wide.length)
    throw new DamagedFile("has wide numbers out of range");
  return [least, most];
}

// The narrowest array that holds the numbers.
function arrayFor(rows: number, least: number, most: number): Column {
  if (least < 0 || most > 0xFFFFFFFF) return new Float64Array(rows);
  return most > 0xFFFF ? new Uint32Array(rows)
    : most > 0xFF ? new Uint16Array(rows) : new Uint8Array(rows);
}

function decodeColumn(raw: Uint8Array, at: number, rows: number,
                      info: ColumnInfo): Column {
  const codes = unplane(raw, at, rows, info);
  if (!info.delta && !info.wide) return codes;
  const out = arrayFor(rows, ...replay(codes, info, null));
  replay(codes, info, out);
  return out;
}

function checkInfo(info: BlockInfo): void {
  let bytes = 0;
  const isCount = (n: unknown) =>
    typeof n === "number" && Number.isSafeInteger(n) && n >= 0;
  if (!isCount(info.rows) || !isCount(info.bytes) ||
      !Array.isArray(info.columns))
    throw new DamagedFile("has no length");
  for (const column of info.columns) {
    if (![1, 2, 4, 8].includes(column.width))
      throw new DamagedFile("has a column without width");
    bytes += column.width * info.rows;
  }
  if (bytes !== info.bytes) throw new DamagedFile("has columns of wrong length");
}

// The text between the quotes; base64 holds no escapes.
function textOf(element: Element): string {
  const text = (element.textContent ?? "").trim();
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"'))
    throw new DamagedFile("is not a text");
  return text.slice(1, -1);
}

async function decode(info: BlockInfo): Promise<Map<string, Column>> {
  checkInfo(info);
  const element = part("block-" + info.name);
  if (!element) throw new DamagedFile("is missing");
  const bytes = fromBase64(textOf(element));
  // The text is not needed again.
  element.remove();
  const raw = await unzip(bytes, info.bytes);
  const columns = new Map<string, Column>();
  let at = 0;
  for (const column of info.columns) {
    columns.set(column.name, decodeColumn(raw, at, info.rows, column));
    at += column.width * info.rows;
  }
  return columns;
}

// Errors name the block.
export async function decodeBlock(info: BlockInfo):
    Promise<Map<string, Column>> {
  try {
    return await decode(info);
  } catch (error) {
    if (!(error instanceof DamagedFile)) throw error;
    throw new DamagedFile(
      `block ${String(info.name).slice(0, 40)} ${error.message}`);
  }
}
