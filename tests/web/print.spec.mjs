// SPDX-License-Identifier: Apache-2.0
//
// A print is the same form whatever view is shown: the trace, the filter as a
// line of text, overview, layers and the first ops, light, without controls,
// nothing cut. The text of the PDF itself is read where pdftotext is installed.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { folder, go, open, pageOf, root, run, traces, until } from
  "./harness.mjs";

const kOpsRows = 40;
const shots = process.env.LAMINA_SHOTS;

function pdfText(path) {
  try {
    return execFileSync("pdftotext", ["-layout", path, "-"],
                        { encoding: "utf8", maxBuffer: 1 << 28 });
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return null;
  }
}

// What the print shows, while it is printed.
const form = (page) => page.evaluate(() => {
  const box = document.getElementById("print");
  const { right } = box.getBoundingClientRect();
  const seen = (e) => e.getClientRects().length > 0;
  const style = getComputedStyle(document.body);
  return {
    sections: [...box.children].map((e) => e.className),
    text: box.innerText,
    ops: box.querySelectorAll(".view-ops tbody tr").length,
    hints: box.innerText.match(/\b(click|press|drag|backspace|filters every|show (them|its|the))\b/gi) ?? [],
    tables: [...box.querySelectorAll("h2:not(.title)")]
      .map((e) => e.innerText).filter((text) => !/^\d+ \u00d7/.test(text)),
    layers: box.querySelectorAll(".view-layers [data-layer]").length,
    pictures: [...box.querySelectorAll("svg.chart, canvas")].filter(seen)
      .length,
    controls: [...document.querySelectorAll("button, input, select, nav, " +
      "footer, aside, header")].filter(seen).map((e) => e.outerHTML
        .slice(0, 60)),
    links: box.querySelectorAll("a[href]").length,
    others: [...document.querySelectorAll("#app > div > *")]
      .filter((e) => e.id !== "print" && seen(e)).length,
    wide: [...box.querySelectorAll("*")].filter((e) => seen(e) &&
      !e.closest(".offscreen") &&
      e.getBoundingClientRect().right > right + 1).map((e) =>
        `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`)
      .slice(0, 3),
    cut: [...box.querySelectorAll("tr")].filter((e) => seen(e) &&
      getComputedStyle(e).breakInside !== "avoid").length,
    // Smaller than half of 7.5 points nobody can read it.
    tiny: [...box.querySelectorAll("table")].filter((e) =>
      parseFloat(e.style.zoom || 1) < 0.5).length,
    scrolls: [...box.querySelectorAll(".tablebox")].filter((e) =>
      getComputedStyle(e).overflow !== "visible" ||
      e.scrollHeight > e.clientHeight + 1).length,
    colors: [style.backgroundColor, style.color],
  };
});

// The form is there once its tables have been read.
const printable = (page) => until(page, () =>
  document.documentElement.dataset.print === "ready");

async function printed(page) {
  await page.emulateMedia({ media: "print" });
  await until(page, () => document.documentElement.dataset.form === "1");
  const found = await form(page);
  await page.emulateMedia({ media: null });
  await until(page, () => document.documentElement.dataset.form === undefined
    && document.documentElement.dataset.ready !== undefined);
  return found;
}

async function pdf(page, name) {
  const path = join(shots ?? folder, name + ".pdf");
  if (shots) mkdirSync(shots, { recursive: true });
  await page.pdf({ path, preferCSSPageSize: true });
  return path;
}

// What stands below the titles of the views.
const kOnPaper = ["Kernel time by family", "Top opportunities", "Warnings",
  "Longest gaps", "Device time", "Kinds of layers", "Stacks", "Passes"];
const kLight = ["rgb(255, 255, 255)", "rgb(27, 36, 48)"];

const tests = {};
tests["the keys that print wait for the form"] = async (check) => {
  const page = await open(pageOf(traces.train), { hash: "#v=kernels",
    init: () => {
      globalThis.requestIdleCallback = () => 0;  // it is never idle
      globalThis.print = () => {
        const { dataset } = document.documentElement;
        dataset.printed = dataset.print ?? "too early";
      };
    } });
  check.equal("not read ahead", await page.evaluate(() =>
    document.documentElement.dataset.print), undefined);
  await page.keyboard.press("Control+P");
  await until(page, () => document.documentElement.dataset.printed);
  check.equal("printed when it is read", await page.evaluate(() =>
    document.documentElement.dataset.printed), "ready");
};
for (const name of ["train", "moe", "owlv2", "sglang"].filter((n) => traces[n])) {
  tests[`${name}: the form`] = async (check) => {
    for (const theme of ["light", "dark"]) {
      const page = await open(pageOf(traces[name]), { theme,
        hash: "#v=timeline&theme=" + theme });
      await printable(page);
      const facts = await page.evaluate(() => ({
        ops: __lamina.model.table("op_efficiency").rows,
        layers: __lamina.model.table("layers").rows,
        title: __lamina.model.title }));
      const what = `${name}, ${theme}`;
      const found = await printed(page);
      check.equal(`${what}: sections`, found.sections, ["sheet",
        "sheet view-overview", ...facts.layers > 0 ? ["sheet view-layers"] : [],
        "sheet view-ops"]);
      check.true(`${what}: trace and filter`, found.text.includes(facts.title) &&
        found.text.includes("No filter"));
      // Work in no op may be a row too.
      check.true(`${what}: ops ${found.ops}`, found.ops === kOpsRows ||
        found.ops < kOpsRows && found.ops >= facts.ops &&
        found.ops <= facts.ops + 1);
      check.equal(`${what}: bars`, found.layers > 0, facts.layers > 0);
      check.equal(`${what}: controls`, found.controls, []);
      check.equal(`${what}: links`, found.links, 0);
      check.equal(`${what}: hints`, found.hints, []);
      check.equal(`${what}: only what the form is for`, found.tables
        .filter((title) => !kOnPaper.includes(title)), []);
      check.equal(`${what}: nothing else`, found.others, 0);
      check.equal(`${what}: cut at the side`, found.wide, []);
      check.equal(`${what}: rows may be cut`, found.cut, 0);
      check.equal(`${what}: too small`, found.tiny, 0);
      check.equal(`${what}: boxes that scroll`, found.scrolls, 0);
      check.equal(`${what}: colours`, found.colors, kLight);
      // The screen is as before.
      check.equal(`${what}: afterwards`, await page.evaluate(() => [
        document.documentElement.dataset.theme, __lamina.state().view,
        document.getElementById("print").childElementCount]),
        [theme, "timeline", 0]);

      const path = await pdf(page, `${name}-${theme}`);
      const bytes = readFileSync(path);
      check.true(`${what}: a document`, bytes.subarray(0, 5).toString() ===
                 "%PDF-" && bytes.length > 8000);
      check.true(`${what}: A4`, /\/MediaBox\s*\[0 0 59[45][.\d]* 84[12]/.test(
        bytes.toString("latin1")));
      const text = pdfText(path);
      if (text !== null) {
        for (const words of ["Top opportunities", "Ops", facts.title,
                             "No filter", "kernel time"])
          check.true(`${what}: text ${words}`, text.includes(words));
        check.true(`${what}: no words of buttons`,
          !/Copy (CSV|Markdown)|Download|All columns|Theme/.test(text));
      }
    }
  };
}

Object.assign(tests, {
  "filters in words, in the ops": async (check) => {
    const page = await open(pageOf(traces.train), { theme: "dark",
      hash: "#v=kernels&fam=gemm&not.op=aten%3A%3Aaddmm&o.ops.sort=calls-" });
    await printable(page);
    const { text } = await printed(page);
    const { count } = await page.evaluate(() => __lamina.selection());
    check.true("line", text.includes(
      `Filters: family gemm; not op aten::addmm. ${count} of`));
    const ops = text.slice(text.lastIndexOf("Ops"));
    check.true("rows of the filter", ops.includes("aten::mm") &&
               !ops.includes("aten::_fused_adamw_"));
  },

  "pages of other commands": async (check) => {
    const ranks = join(root, "samples/ranks");
    const rank = (n) => join(ranks, `rank${n}.json.gz`);
    const dumps = join(root, "samples/dumps");
    for (const [view, name, ...args] of [
      ["diff", "diff", "diff", rank(0), rank(2)],
      ["ranks", "ranks", "ranks", ranks],
      ["fusions", "census", "graph", "census", dumps],
    ]) {
      const html = join(folder, `print-${name}.html`);
      run(...args, "--format", "html", "-o", html);
      const page = await open(html, { theme: "dark" });
      await go(page, "#v=tables", "tables");
      await printable(page);
      const found = await printed(page);
      check.equal(`${name}: sections`, found.sections,
                  ["sheet", "sheet view-" + view]);
      check.equal(`${name}: controls`, found.controls, []);
      check.equal(`${name}: hints`, found.hints, []);
      check.equal(`${name}: cut at the side`, found.wide, []);
      check.true(`${name}: text`, found.text.length > 300);
      check.equal(`${name}: colours`, found.colors, kLight);
      await pdf(page, name);
    }
    // A drawing on the paper's own grid of dots, light: its first pixel is the
    // page.
    const page = await open(join(folder, "print-ranks.html"),
                            { theme: "dark" });
    await printable(page);
    await page.emulateMedia({ media: "print" });
    await until(page, () => document.documentElement.dataset.form === "1");
    const canvas = await page.evaluate(() => {
      const c = document.querySelector("#print canvas.heat");
      return { ratio: c.width / c.clientWidth, pixel: [...c.getContext("2d")
        .getImageData(1, c.height - 2, 1, 1).data].slice(0, 3) };
    });
    check.true(`sharp: ${canvas.ratio}`, canvas.ratio > 2.5);
    check.equal("light", canvas.pixel, [255, 255, 255]);
  },

  "before its tables are read": async (check) => {
    // The view that is shown, without controls.
    const page = await open(pageOf(traces.train), { hash: "#v=kernels",
      theme: "dark", init: () => { globalThis.requestIdleCallback = () => 0; },
    });
    await page.emulateMedia({ media: "print" });
    await until(page, () => document.documentElement.dataset.theme === "light");
    check.equal("what is seen", await page.evaluate(() => {
      const seen = (e) => e.getClientRects().length > 0;
      return [document.getElementById("print").childElementCount,
        seen(document.querySelector(".view-kernels")),
        [...document.querySelectorAll("nav, footer, .icons, .tools button")]
          .filter(seen).length];
    }), [0, true, 0]);
  },
});
export default tests;
