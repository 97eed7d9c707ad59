// SPDX-License-Identifier: Apache-2.0
//
// Names that tell apart: what many share is pale and cut first, what one has
// alone is bold and seen; columns can be made wider; no two tracks have one name.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { copied, folder, go, open, pageOf, parseCsv, press, root, written }
  from "./harness.mjs";

const tile = (size, more = "") => "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_" +
  `MT${size}_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTVA0${more}`;
const kNames = [tile("256x32x64"), tile("32x32x256"), tile("128x224x64"),
  tile("128x224x64", "_WS64"), "attn_fwd",
  "x".repeat(10_000), "<b>bold</b>" + "y".repeat(300),
  "\u202ereversed " + "z".repeat(200)];

function trace() {
  const path = join(folder, "apart.json");
  const thread = (tid) => ({ ph: "M", name: "thread_name", pid: 1, tid,
                             args: { name: "worker" } });
  writeFileSync(path, JSON.stringify({ traceEvents: [thread(11), thread(12),
    ...kNames.flatMap((name, i) => [
      { ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts: 100 * i + 20,
        dur: 30 + i, args: { device: 0, stream: 7, correlation: i + 1 } },
      { ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1,
        tid: 11 + i % 2, ts: 100 * i, dur: 9, args: { correlation: i + 1 } }])] }));
  return path;
}

// Bold parts of the cell of a kernel, and whether they are seen.
const boldOf = (page, name) => page.evaluate((text) => {
  const cell = [...document.querySelectorAll("tbody td .apart")]
    .find((one) => one.textContent === text);
  const outer = cell.closest("td").getBoundingClientRect();
  return [...cell.querySelectorAll("b")].map((bold) => {
    const inner = bold.getBoundingClientRect();
    return [bold.textContent, inner.width > 0 && inner.left >= outer.left &&
            inner.right <= outer.right + 0.5];
  });
}, name);

export default {
  "differences are bold and seen": async (check) => {
    for (const width of [1440, 1280]) {
      const page = await open(pageOf(trace()), { hash: "#v=kernels", width });
      for (const size of ["256x32x64", "32x32x256"]) {
        check.equal(`${size} at ${width}`, await boldOf(page, tile(size)),
                    [[`MT${size}`, true]]);
      }
      check.equal("a tail of its own", (await boldOf(page,
        tile("128x224x64", "_WS64"))).map(([text]) => text), ["_WS64"]);
      check.equal("nothing is like it", await boldOf(page, "attn_fwd"), []);
      check.true("the shared part is pale, and cut first", await page.evaluate(() => {
        const head = document.querySelector(".apart .head");
        return getComputedStyle(head).color !==
          getComputedStyle(head.parentElement).color &&
          head.scrollWidth > head.clientWidth;
      }));
      check.equal("the page does not scroll sideways", await page.evaluate(() =>
        document.documentElement.scrollWidth <= innerWidth), true);
    }
  },

  "copies have the whole name": async (check) => {
    const page = await open(pageOf(trace()), { hash: "#v=kernels" });
    const rows = parseCsv(await copied(page, () => page.keyboard.press("c")));
    check.equal("names", rows.map((row) => row.kernel.length).sort((a, b) => a - b),
                kNames.map((name) => name.length).sort((a, b) => a - b));
  },

  "columns are made wider": async (check) => {
    const page = await open(pageOf(trace()), { hash: "#v=kernels", width: 1440 });
    const widthOf = () => page.locator("th").first().evaluate((th) =>
      th.offsetWidth);
    const usual = await widthOf();
    const grip = await page.locator("th .grip").first().boundingBox();
    await page.mouse.move(grip.x + 4, grip.y + 8);
    await page.mouse.down();
    await page.mouse.move(grip.x + 204, grip.y + 8, { steps: 4 });
    await page.mouse.up();
    check.equal("by dragging its edge", await widthOf(), usual + 200);
    await press(page, "t", "kernels");
    check.equal("which lasts", await widthOf(), usual + 200);
    await page.locator("th button").first().focus();
    await page.keyboard.press("Alt+ArrowRight");
    check.equal("by keys", await widthOf(), usual + 224);
    await page.locator("th .grip").first().dblclick();
    check.equal("as usual", await widthOf(), usual);
    check.equal("the page does not scroll sideways", await page.evaluate(() =>
      document.documentElement.scrollWidth <= innerWidth), true);
  },

  "no two tracks have one name": async (check) => {
    const labels = async (page) => (await page.evaluate(() => __lamina.tracks()))
      .map(({ label }) => label);
    const page = await open(pageOf(trace()), { hash: "#v=timeline" });
    const own = await labels(page);
    check.equal("threads of one name", new Set(own).size, own.length);
    check.true(`they have their numbers: ${own}`,
      ["11", "12"].every((tid) => own.some((label) =>
        /worker/.test(label) && label.includes(tid))));
    const samples = ["rank0", "rank2"].map((name) =>
      join(root, `samples/ranks/${name}.json.gz`));
    const pair = await open(written("diff", ...samples, "--format", "html"),
                            { hash: "#v=timeline" });
    const both = await labels(pair);
    check.equal("of a comparison", new Set(both).size, both.length);
    // The tooltip has all of a name that is cut.
    const { x, y } = await page.locator("canvas[tabindex]").boundingBox();
    const [track] = await page.evaluate(() => __lamina.tracks());
    await page.mouse.move(x + 20, y + track.y + 6);
    check.true("a tooltip says the name", (await page.locator(".tip")
      .textContent()).startsWith(track.label));
    await go(page, "#v=kernels", "kernels");
  },
};
