// SPDX-License-Identifier: Apache-2.0
//
// A table of a million rows: sorted, scrolled, and never more than some rows
// in the document. The table is written into the page of a sample.
import { gzipSync } from "node:zlib";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { folder, open, pageOf, ready, traces } from "./harness.mjs";

const kRows = 1_000_000;
const kEmpty = 1000;     // of the column "some", the first rows
const kMostElements = 300;

// Little-endian numbers of four bytes, in planes.
function planes(values) {
  const out = Buffer.alloc(values.length * 4);
  for (let plane = 0; plane < 4; ++plane) {
    for (let i = 0; i < values.length; ++i)
      out[plane * values.length + i] = values[i] >>> (8 * plane);
  }
  return out;
}

// `number` holds each of 0 ... kRows - 1 once, `some` the same and nothing in
// the first rows, `word` few different texts.
function withManyRows(page) {
  const text = readFileSync(page, "utf8");
  const begin = text.indexOf('id="manifest">') + 'id="manifest">'.length;
  const end = text.indexOf("</script>", begin);
  const manifest = JSON.parse(text.slice(begin, end));
  const texts = manifest.blocks.find((b) => b.name === "string_lengths").rows;
  const name = "t" + manifest.tables.length;
  const number = Uint32Array.from({ length: kRows },
                                  (_, i) => (i * 7919) % kRows);
  const missing = Buffer.alloc(kRows).fill(1, 0, kEmpty);
  const raw = Buffer.concat([planes(number), planes(number), missing,
    planes(number.map((_, i) => i % Math.min(texts, 50)))]);
  const column = (title, type, more) => ({ name: title, type, shown: "plain",
                                           doc: "", ...more });
  manifest.tables.push({ name: "many", doc: "A million rows.", rows: kRows,
    columns: [column("number", "int"), column("some", "int", { nulls: 1 }),
              column("word", "text")] });
  manifest.blocks.push({ name, rows: kRows, bytes: raw.length, columns: [
    { name: "0", width: 4 }, { name: "1", width: 4 }, { name: "1?", width: 1 },
    { name: "2", width: 4 }] });
  const out = join(folder, "many.html");
  writeFileSync(out, text.slice(0, begin) +
    JSON.stringify(manifest).replace(/</g, "\\u003c") + "</script>" +
    `<script type="application/json" id="block-${name}">"` +
    gzipSync(raw, { level: 1 }).toString("base64") + '"' + text.slice(end));
  return out;
}

// What the box shows: the cells of all rows in the document, the row at the
// top of the box, and how many elements there are.
const shown = (page) => page.evaluate(() => {
  const box = document.querySelector(".tablebox");
  const rows = [...box.querySelectorAll("tbody tr:not(.room)")];
  const top = box.getBoundingClientRect().top +
    box.querySelector("thead").getBoundingClientRect().height;
  const bottom = box.getBoundingClientRect().bottom;
  const inBox = rows.filter((row) => {
    const at = row.getBoundingClientRect();
    return at.bottom > top + 1 && at.top < bottom - 1;
  });
  const cells = (row) => [...row.children].map((cell) => cell.textContent);
  return { elements: box.querySelectorAll("tr").length,
           rows: rows.map(cells), inBox: inBox.map(cells),
           filled: inBox.length * 29 >= bottom - top - 60 };
});

const integer = (text) => Number(text.replace(/[^0-9]/g, ""));

async function scrollTo(page, share) {
  await page.evaluate((s) => new Promise((done) => {
    const box = document.querySelector(".tablebox");
    const top = Math.round(s * (box.scrollHeight - box.clientHeight));
    if (Math.abs(box.scrollTop - top) < 1) return done();
    // The table draws in its own listener, which is older than this one.
    box.addEventListener("scroll", () => done(), { once: true });
    box.scrollTop = top;
  }), share);
}

async function sortBy(page, column, direction) {
  const hash = `#v=tables&o.tables.name=many&o.tables.sort=${column}` +
    encodeURIComponent(direction);
  await page.evaluate((h) => {
    delete document.documentElement.dataset.ready;
    location.hash = h;
  }, hash);
  await ready(page, "tables");
}

const tests = {
  "a million rows": async (check) => {
    const page = await open(withManyRows(pageOf(traces.serve)),
                            { hash: "#v=tables&o.tables.name=many" });
    const first = await shown(page);
    check.equal("in the order of the file", first.inBox.slice(0, 3)
      .map((row) => integer(row[0])), [0, 7919, 15838]);
    for (const direction of ["+", "-"]) {
      await sortBy(page, "aa", direction);
      for (const share of [0, 1, 0.5, 0.123, 0.9, 0.0001, 0.9999, 0.31]) {
        await scrollTo(page, share);
        const { elements, rows, inBox, filled } = await shown(page);
        const what = `sorted ${direction}, at ${share}`;
        check.true(`${what}: ${elements} row elements`,
                   elements <= kMostElements);
        check.true(`${what}: the box is full`, filled);
        const numbers = rows.map((row) => integer(row[0]));
        const step = direction === "+" ? 1 : -1;
        check.true(`${what}: no row is left out`, numbers.every((n, i) =>
          i === 0 || n === numbers[i - 1] + step));
        // The place of the scroll bar is that of the rows.
        const middle = integer(inBox[inBox.length >> 1][0]);
        const place = (direction === "+" ? middle : kRows - 1 - middle) / kRows;
        check.true(`${what}: row ${middle}`, Math.abs(place - share) < 2e-4);
        if (share === 1) {
          check.equal(`${what}: the last row`, integer(inBox.at(-1)[0]),
                      direction === "+" ? kRows - 1 : 0);
        }
        if (share === 0) {
          check.equal(`${what}: the first row`, integer(inBox[0][0]),
                      direction === "+" ? 0 : kRows - 1);
        }
      }
    }
    for (const direction of ["+", "-"]) {
      await sortBy(page, "ab", direction);
      await scrollTo(page, 1);
      const { inBox } = await shown(page);
      // Equal rows keep the order of the file.
      check.equal(`empty cells are last, ${direction}`,
        inBox.slice(-3).map((row) => [row[1], integer(row[0])]),
        [kEmpty - 3, kEmpty - 2, kEmpty - 1].map((i) =>
          ["", (i * 7919) % kRows]));
    }
    await page.context().close();
  },
};
export default tests;
