// SPDX-License-Identifier: Apache-2.0
//
// Blocks of the file to typed arrays: base64, deflate, byte planes,
// differences. The writer is src/render/html/columns.cc. Everything read here
// is checked; what does not fit raises DamagedFile.

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
    throw new DamagedFile("a block is not base64");
  }
}

async function inflate(bytes: Uint8Array<ArrayBuffer>, length: number):
    Promise<Uint8Array> {
  const out = new Uint8Array(length);
  let at = 0;
  try {
    const stream = new Blob([bytes]).stream()
      .pipeThrough(new DecompressionStream("deflate-raw"));
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (at + value.length > length) throw new DamagedFile("too long");
      out.set(value, at);
      at += value.length;
    }
  } catch {
    throw new DamagedFile("a block cannot be unpacked");
  }
  if (at !== length) throw new DamagedFile("a block is too short");
  return out;
}

function unzigzag(code: number): number {
  return code % 2 === 0 ? code / 2 : -(code + 1) / 2;
}

function unplane(raw: Uint8Array, at: number, rows: number,
                 info: ColumnInfo): Column {
  if (info.width === 1) return raw.subarray(at, at + rows);
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

function decodeColumn(raw: Uint8Array, at: number, rows: number,
                      info: ColumnInfo): Column {
  const codes = unplane(raw, at, rows, info);
  if (!info.delta && !info.wide) return codes;
  const out = new Float64Array(rows);
  let next = 0;
  let sum = 0;
  const wide = info.wide ?? [];
  for (let i = 0; i < rows; ++i) {
    if (next < wide.length && wide[next]![0] === i) {
      sum = wide[next]![1];
      ++next;
    } else if (info.delta) {
      sum += unzigzag(codes[i]!);
    } else {
      sum = codes[i]!;
    }
    out[i] = sum;
  }
  if (next !== wide.length) throw new DamagedFile("wide numbers out of range");
  // Half the memory where 32 bits are enough.
  return out.every((value) => value >= 0 && value <= 0xFFFFFFFF)
    ? Uint32Array.from(out) : out;
}

function checkInfo(info: BlockInfo): void {
  let bytes = 0;
  const isCount = (n: unknown) =>
    typeof n === "number" && Number.isSafeInteger(n) && n >= 0;
  if (!isCount(info.rows) || !isCount(info.bytes) ||
      !Array.isArray(info.columns))
    throw new DamagedFile("a block has no length");
  for (const column of info.columns) {
    if (![1, 2, 4, 8].includes(column.width))
      throw new DamagedFile("a column has no width");
    bytes += column.width * info.rows;
  }
  if (bytes !== info.bytes) throw new DamagedFile("columns of wrong length");
}

export async function decodeBlock(info: BlockInfo):
    Promise<Map<string, Column>> {
  checkInfo(info);
  const element = document.getElementById("block-" + info.name);
  if (!element) throw new DamagedFile(`block ${info.name} is missing`);
  let text: unknown;
  try {
    text = JSON.parse(element.textContent ?? "");
  } catch {
    text = undefined;
  }
  if (typeof text !== "string") throw new DamagedFile("a block is not text");
  const raw = await inflate(fromBase64(text), info.bytes);
  // The text is not needed again.
  element.remove();
  const columns = new Map<string, Column>();
  let at = 0;
  for (const column of info.columns) {
    columns.set(column.name, decodeColumn(raw, at, info.rows, column));
    at += column.width * info.rows;
  }
  return columns;
}
