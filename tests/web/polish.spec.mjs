// SPDX-License-Identifier: Apache-2.0
//
// One style of numbers, and small things that people stumble over.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { folder, go, open, pageOf, press, root, traces, until, written }
  from "./harness.mjs";

const rank = (n) => join(root, `samples/ranks/rank${n}.json.gz`);

// Times in visible text, with what they look like.
const timesOf = (text) => [...text.matchAll(
  /([-+\u2212]?)(\d[\d,]*(?:\.\d+)?) (ns|us|\u00b5s|ms|s)(?![\w/])/g)];

export default {
  "sentences have the numbers of the tables": async (check) => {
    for (const [name, file] of [["train", pageOf(traces.train)],
        ["moe", pageOf(traces.moe)],
        ["diff", written("diff", rank(0), rank(2), "--format", "html")]]) {
      const page = await open(file, name === "diff" ? {}
        : { hash: "#v=overview" });
      const verdict = await page.locator(".verdict").first().textContent();
      const known = new Set(timesOf(await page.locator(".cards")
        .innerText()).map(([, , number, unit]) => `${number} ${unit}`));
      const said = timesOf(verdict);
      check.true(`${name}: it says times: ${verdict}`, said.length > 0);
      // A card shows one of them with the same digits.
      check.true(`${name}: ${said.map(([text]) => text)} in ${[...known]}`,
        said.some(([, , number, unit]) => known.has(`${number} ${unit}`)));
      check.true(`${name}: four digits`, said.filter(([, , number]) =>
        number.replace(/[^\d]/g, "").length === 4).length * 2 > said.length);
    }
  },

  "one unit and one minus": async (check) => {
    for (const file of [pageOf(traces.train), written("diff", rank(0), rank(2),
        "--format", "html"), written("ranks", join(root, "samples/ranks"),
        "--format", "html")]) {
      const page = await open(file);
      const views = await page.evaluate(() => [...document.querySelectorAll(
        "nav a")].map((a) => new URL(a.href).hash.match(/v=([a-z]+)/)[1]));
      for (const view of views) {
        await go(page, "#v=" + view, view);
        const text = await page.locator("main").innerText();
        check.equal(`${view}: microseconds`, text.match(/\d us\b.{0,20}/g), null);
        check.equal(`${view}: minus`,
          text.match(/(^|[\s(])-\d[\d.]* (%|ns|\u00b5s|ms|s)/gm), null);
      }
    }
  },

  "the legend follows the filter": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=kernels" });
    const shares = () => page.locator(".legend button").evaluateAll((list) =>
      Object.fromEntries(list.map((button) => {
        const [, name, share] = /^(\w+) ([\d.]+) %$/.exec(button.textContent);
        return [name, Number(share)];
      })));
    const all = await shares();
    const [name] = await page.evaluate(() => {
      const table = __lamina.model.table("kernels");
      const row = Array.from({ length: table.rows }, (_, at) => at)
        .find((at) => table.str(at, "family") === "gemm" && table.str(at, "op"));
      return [table.str(row, "op")];
    });
    await go(page, `#v=kernels&op=${encodeURIComponent(name)}`, "kernels");
    const some = await shares();
    check.equal("an op of one family", [some.gemm, Object.values(some)
      .reduce((a, b) => a + b, 0)], [100, 100]);
    check.true("which was less of all", all.gemm < 100);
    // What the legend itself sets does not change it.
    await go(page, "#v=kernels&fam=gemm", "kernels");
    check.equal("the families that are left out keep theirs", await shares(), all);
  },

  "the histogram can be read": async (check) => {
    for (const width of [1440, 390]) {
      const page = await open(pageOf(traces.moe), { hash: "#v=kernels", width });
      const texts = await page.locator(".limit text").evaluateAll((list) =>
        list.map((text) => [text.textContent, text.getBoundingClientRect().height]));
      check.true(`${width}: text as elsewhere: ${texts[0]}`, texts.length > 3 &&
        texts.every(([, height]) => height > 9 && height < 19));
      check.true(`${width}: an axis of counts from 0`, texts.some(([text]) =>
        text === "0") && texts.filter(([text]) => /^[\d,]+$/.test(text)).length > 1);
      const boxes = await page.locator(".limit text").evaluateAll((list) =>
        list.map((text) => text.getBoundingClientRect())
          .map(({ left, right, top, bottom }) => [left, right, top, bottom]));
      check.true(`${width}: no text over another`, boxes.every((a, i) =>
        boxes.every((b, k) => i === k || a[1] <= b[0] || b[1] <= a[0] ||
                    a[3] <= b[2] + 2 || b[3] <= a[2] + 2)));
    }
  },

  "keys reach the drawing, and act there": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=timeline" });
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    check.equal("two keys", await page.evaluate(() =>
      document.activeElement.dataset.k), "timeline.canvas");
    await press(page, "Enter", "timeline");
    check.true("Enter chooses an event", await page.evaluate(() =>
      __lamina.state().selected) !== "");
    check.true("and says which of how many", /^1 of [\d,]+$/.test(
      await page.locator("footer").textContent()));
    // The line around the focus is inside of a chip, which cuts it.
    await go(page, "#v=timeline&fam=gemm", "timeline");
    await page.locator(".chip .close").focus();
    await press(page, "8", "kernels");
    check.true("the focus is all inside", await page.evaluate(() => {
      const { outlineStyle, outlineOffset } = getComputedStyle(
        document.activeElement);
      return outlineStyle === "none" || parseFloat(outlineOffset) < 0;
    }));
  },

  "traces of one kernel, and names that are empty": async (check) => {
    const path = join(folder, "alone.json");
    writeFileSync(path, JSON.stringify({ traceEvents: [
      { ph: "X", cat: "kernel", name: "", pid: 0, tid: 7, ts: 10, dur: 3,
        args: { device: 0, stream: 7 } }] }));
    const page = await open(pageOf(path));
    const text = await page.locator("main").innerText();
    check.true("it is not called launch bound", !/launch(es)? too slowly|fuse/
      .test(text));
    check.true(`singular: ${text.match(/\b1 \w+s\b/g)}`,
               !/\b1 (gaps|kernels|events|rows|layers|passes|steps)\b/.test(text));
    await go(page, "#v=kernels", "kernels");
    check.true("a name to click", (await page.locator("tbody a").first()
      .textContent()).trim() !== "");
    await go(page, "#v=timeline", "timeline");
    await press(page, "Enter", "timeline");
    await until(page, () => !document.querySelector("aside").hidden);
    check.true("a name in the panel", (await page.locator("aside h2").textContent())
      .trim() !== "");
  },
};
