// SPDX-License-Identifier: Apache-2.0
//
// Roofline: ops, single calls as density, the least share, the rectangle.
import { act, click, go, ns, open, pageOf, tablesOf, traces } from
  "./harness.mjs";
import { picture } from "./pictures.mjs";

const selection = (page) => page.evaluate(() => __lamina.selection());
const state = (page) => page.evaluate(() => __lamina.state());
const all = Object.values(traces);

const kPerDecade = 8;
const bin = (value) => Math.floor(kPerDecade * Math.log10(value) + 1e-9);

const cells = (page) => page.locator("[data-cell]").evaluateAll((list) =>
  list.map((cell) => ({ at: cell.dataset.cell,
                        calls: Number(cell.dataset.calls) })));
const sum = (list) => list.reduce((total, cell) => total + cell.calls, 0);

// Draws a rectangle around an element, a little larger than it.
async function dragAround(page, view, target) {
  const box = await target.boundingBox();
  await act(page, view, async () => {
    await page.mouse.move(box.x - 4, box.y - 4);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width + 4, box.y + box.height + 4,
                          { steps: 4 });
    await page.mouse.up();
  });
}

export default {
  "density counts every call once": async (check) => {
    for (const trace of all) {
      const ops = tablesOf(trace)("op_efficiency").filter((row) =>
        row.roofline_us !== "");
      const page = await open(pageOf(trace), { hash:
        "#v=roofline&o.roof.by=calls" });
      check.equal(`${trace}: calls`, sum(await cells(page)),
        ops.reduce((total, row) => total + Number(row.count), 0));
      for (const row of [...ops.slice(0, 4),
                         ...ops.filter((r) => r.count === "1").slice(0, 4)]) {
        await go(page, `#v=roofline&o.roof.by=calls&row=${row.first_uid}`,
                 "roofline");
        const of = await cells(page);
        check.equal(`${row.op}: calls`, sum(of), Number(row.count));
        if (row.count !== "1" || !(Number(row.flops_per_s) > 1e8)) continue;
        check.equal(`${row.op}: place`, of[0].at,
          `${bin(Number(row.flops_per_byte))} ` +
          `${bin(Number(row.flops_per_s) / 1e12)}`);
      }
    }
  },

  "density under filters, and its links": async (check) => {
    const trace = traces.owlv2 ?? traces.train;
    const page = await open(pageOf(trace), { hash:
      "#v=roofline&o.roof.by=calls" });
    await picture(page, "roofline-calls");
    for (const filter of ["fam=gemm", "dur=>20000", "not.fam=gemm"]) {
      await go(page, `#v=roofline&o.roof.by=calls&${filter}`, "roofline");
      const expected = await page.evaluate(() => {
        const { model } = __lamina;
        const { device } = model;
        const mask = __lamina.filterMask(__lamina.state().chips);
        const ops = model.table("op_efficiency");
        const found = new Set();
        for (let i = 0; i < device.count; ++i) {
          if (mask[i] && device.op[i] > 0 &&
              ops.at(device.op[i] - 1, "roofline_us") !== null)
            found.add(`${device.op[i]} ${device.call[i]}`);
        }
        return found.size;
      });
      check.equal(filter, sum(await cells(page)), expected);
    }
    await go(page, "#v=roofline&o.roof.by=calls", "roofline");
    // A cell of few calls leads to their events, and so does a rectangle.
    const few = page.locator("[data-cell]").filter({ visible: true });
    const counts = await few.evaluateAll((list) => list.map((cell) =>
      [cell.dataset.calls, cell.getAttribute("href")]));
    const at = counts.findIndex(([, href]) => /uid=/.test(href));
    const uids = decodeURIComponent(/uid=([^&]*)/.exec(counts[at][1])[1])
      .split(",").map(Number);
    await click(page, few.nth(at), "timeline");
    check.equal("the events of a cell", (await selection(page)).count,
                uids.length);
    check.equal("are those of its calls", await page.evaluate((list) => {
      const { device } = __lamina.model;
      const wanted = new Set(list);
      const found = new Set();
      for (let i = 0; i < device.count; ++i)
        if (wanted.has(device.uid[i]))
          found.add(`${device.op[i]} ${device.call[i]}`);
      return found.size;
    }, uids), Number(counts[at][0]));
  },

  "rectangles filter": async (check) => {
    const trace = traces.owlv2 ?? traces.train;
    const page = await open(pageOf(trace), { hash: "#v=roofline" });
    const points = await page.locator("[data-point]").evaluateAll((list) =>
      list.map((point) => ({ key: point.dataset.point,
                             x: point.getBoundingClientRect().x })));
    const last = points.reduce((a, b) => (b.x > a.x ? b : a));
    await dragAround(page, "roofline",
                     page.locator(`[data-point="${last.key}"]`));
    const chip = (await state(page)).chips[0];
    check.equal("a chip of rows", chip.kind, "row");
    check.true("with the op", chip.values.includes(last.key));
    await go(page, "#v=roofline&o.roof.by=calls", "roofline");
    const before = sum(await cells(page));
    await dragAround(page, "roofline", page.locator("[data-cell]").last());
    const after = sum(await cells(page));
    check.true("fewer calls", after > 0 && after < before);
  },

  "the least share of the time": async (check) => {
    const trace = traces.owlv2 ?? traces.train;
    const ops = tablesOf(trace)("op_efficiency").filter((row) =>
      row.roofline_us !== "");
    const page = await open(pageOf(trace), { hash: "#v=roofline" });
    const total = (await selection(page)).time;
    check.equal("all ops", await page.locator("[data-point]").count(),
                ops.length);
    for (const least of [0.5, 2]) {
      await go(page, `#v=roofline&o.roof.min=${least}`, "roofline");
      check.equal(`ops with ${least} %`,
        await page.locator("[data-point]").count(), ops.filter((row) =>
          ns(row.kernel_time_us) >= least / 100 * total).length);
    }
    for (const bad of ["-1", "abc", "1e999", "%3Cb%3E"])
      await go(page, `#v=roofline&o.roof.min=${bad}&o.roof.by=${bad}`,
               "roofline");
    check.true("a hostile value draws", await page.locator("main").isVisible());
  },
};
