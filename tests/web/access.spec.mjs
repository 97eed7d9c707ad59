// SPDX-License-Identifier: Apache-2.0
//
// Themes, widths, contrast, names and roles; pictures for people.
//   LAMINA_SHOTS=DIR keeps a picture of each view.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { click, go, open, pageOf, press, root, traces, until } from "./harness.mjs";

const trace = traces.owlv2 ?? traces.train;
const kViews = ["overview", "timeline", "steps", "layers", "modules", "ops", "roofline",
                "kernels", "host", "health", "tables"];

// Contrast of every visible text with what is behind it.
function lowContrast() {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92
    : ((c + 0.055) / 1.055) ** 2.4;
  const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) +
    0.0722 * channel(b);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest("svg, script, style, " +
        ".offscreen, .skip, option, [hidden], #static, dialog") ||
        element.getClientRects().length === 0) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(style.color)), light(behind(element))]
      .sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 18.7 &&
      Number(style.fontWeight) >= 600;
    if (ratio < (large ? 3 : 4.5))
      bad.push(`${ratio.toFixed(1)} ${node.textContent.trim().slice(0, 40)}`);
  }
  return bad;
}

// What a page must have for those who use no mouse or see no colours.
function withoutNames() {
  const bad = [];
  const nameOf = (e) => e.getAttribute("aria-label") || e.textContent.trim() ||
    e.labels?.[0]?.textContent.trim() || e.title;
  for (const e of document.querySelectorAll(
    "a[href], button, input, select, canvas, [role=img], [role=region]")) {
    if (e.getClientRects().length === 0 || e.getAttribute("aria-hidden"))
      continue;
    if (!nameOf(e)) bad.push(`no name: ${e.outerHTML.slice(0, 100)}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  if (twice.length > 0) bad.push(`ids twice: ${twice}`);
  if (document.querySelectorAll("h1").length !== 1 &&
      document.querySelectorAll("#app h1").length !== 1) bad.push("h1");
  for (const e of document.querySelectorAll("th"))
    if (e.getAttribute("scope") !== "col") bad.push("th without scope");
  for (const e of document.querySelectorAll("[role=tab]"))
    if (!e.hasAttribute("aria-selected")) bad.push("tab without state");
  if (document.documentElement.lang !== "en") bad.push("no language");
  if (!document.querySelector("main") || !document.querySelector("header"))
    bad.push("no landmarks");
  return bad.slice(0, 5);
}

// Targets smaller than 24 px, for a finger than 36; a link inside a line of
// text may be.
function smallTargets() {
  const least = matchMedia("(pointer: coarse)").matches ? 36 : 24;
  return [...document.querySelectorAll("button, select, input, nav a, " +
    "summary, td a, aside dd a, .frames li a")]
    .filter((e) => !e.closest("[hidden], .offscreen, label") &&
            e.type !== "range")
    .map((e) => [e, e.getBoundingClientRect()])
    .filter(([, r]) => r.width > 0 && (r.width < least || r.height < least))
    .map(([e, r]) => `${e.textContent.slice(0, 20)} ${r.width}x${r.height}`);
}

const tests = {};
for (const theme of ["light", "dark"]) {
  for (const [width, height] of [[1280, 860], [768, 900], [390, 844],
                                 [320, 640]]) {
    tests[`${theme} at ${width}`] = async (check) => {
      const page = await open(pageOf(trace), { theme, width, height,
        touch: width < 500 });
      for (const view of kViews) {
        await go(page, "#v=" + view, view);
        check.true(`${view}: no sideways scroll`, await page.evaluate(() =>
          document.documentElement.scrollWidth <= innerWidth));
        check.equal(`${view}: targets`, await page.evaluate(smallTargets), []);
        if (width !== 768)
          check.equal(`${view}: contrast`, await page.evaluate(lowContrast),
                      []);
        if (width === 1280)
          check.equal(`${view}: names`, await page.evaluate(withoutNames), []);
        const shots = process.env.LAMINA_SHOTS;
        if (shots && (width === 1280 || width === 390)) {
          mkdirSync(shots, { recursive: true });
          await page.screenshot({ path: join(shots,
            `${view}-${theme}-${width}.png`),
            fullPage: width === 390 && view === "overview" });
        }
      }
      check.equal("theme", await page.evaluate(() =>
        document.documentElement.dataset.theme), theme);
      if (width === 1280) {
        await go(page, "#v=timeline", "timeline");
        const pixel = () => page.evaluate(() => {
          const canvas = document.querySelector("[data-k='timeline.canvas']");
          return [...canvas.getContext("2d").getImageData(2,
            canvas.height - 3, 1, 1).data].slice(0, 3);
        });
        const dark = [18, 22, 28];
        const light = [255, 255, 255];
        check.equal("canvas", await pixel(), theme === "dark" ? dark : light);
        await click(page, page.locator("[data-k=theme]"), "timeline");
        check.equal("redrawn", await pixel(), theme === "dark" ? light : dark);
      }
    };
  }
}

// Rows are as high as page.css says, or those of long tables would overlap.
const rowHeights = (page, table) => page.evaluate((name) => [...new Set(
  [...document.querySelectorAll(`[data-k="${name}.box"] tbody tr:not(.room)`)]
    .map((row) => row.getBoundingClientRect().height))], table);
for (const [touch, one, two] of [[true, 40, 58], [false, 29, 46]]) {
  tests[touch ? "for a finger" : "for a mouse"] = async (check) => {
    const page = await open(pageOf(trace), { width: touch ? 390 : 1280,
                                             height: 844, touch });
    check.equal("pointer", await page.evaluate(() =>
      matchMedia("(pointer: coarse)").matches), touch);
    const uid = await page.evaluate(async () => {
      await __lamina.model.require(["device"]);
      return __lamina.model.device.uid[0];
    });
    await go(page, `#v=kernels&sel=${uid}`, "kernels");
    check.equal("panel", await page.evaluate(smallTargets), []);
    check.equal("rows", await rowHeights(page, "kernels"), [one]);
    await go(page, "#v=ops", "ops");
    check.equal("rows of two lines", await rowHeights(page, "ops"), [two]);
  };
}

// Distance of two colours (CIE76), as seen with full colour blindness
// (Machado, Oliveira, Fernandes 2009).
function seen(hex, matrix) {
  const linear = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = matrix.map((row) => Math.min(1, Math.max(0,
    row.reduce((sum, m, i) => sum + m * linear[i], 0))));
  const f = (t) => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const kVision = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
};
const light = (hex) => [1, 3, 5].map((at) =>
  parseInt(hex.slice(at, at + 2), 16) / 255)
  .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (a, b) => {
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
};

Object.assign(tests, {
  "colours of families": async (check) => {
    for (const theme of ["light", "dark"]) {
      const page = await open(pageOf(trace), { theme });
      const { colors, inks, grounds } = await page.evaluate(() =>
        __lamina.palette());
      for (const [group, color] of Object.entries(colors)) {
        for (const ground of grounds)
          check.true(`${theme} ${group} on ${ground}`,
                     ratio(color, ground) >= 3);
        check.true(`${theme} text on ${group}`,
                   ratio(inks[group], color) >= 4.5);
      }
      const file = readFileSync(join(root, "data/labels/palette.yaml"),
                                "utf8");
      check.equal(`${theme}: as in palette.yaml`, colors, Object.fromEntries(
        [...file.matchAll(/group: (\w+), light: '(#\w+)', dark: '(#\w+)'/g)]
          .map(([, group, a, b]) => [group, theme === "light" ? a : b])));
      const names = Object.keys(colors);
      for (const [vision, matrix] of Object.entries(kVision)) {
        let least = Infinity;
        for (const [i, a] of names.entries()) {
          for (const b of names.slice(i + 1)) {
            const [p, q] = [a, b].map((n) => seen(colors[n], matrix));
            least = Math.min(least, Math.hypot(...p.map((v, k) => v - q[k])));
          }
        }
        check.true(`${theme} ${vision}: ${least.toFixed(1)} apart`,
                   least >= 15);
      }
    }
  },

  "keys alone": async (check) => {
    const page = await open(pageOf(trace));
    const visible = () => page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return "body";
      const style = getComputedStyle(e);
      return style.outlineStyle !== "none" && style.outlineWidth !== "0px"
        ? "yes" : e.closest("svg") ? "yes" : `no: ${e.outerHTML.slice(0, 80)}`;
    });
    const seen = new Set();
    for (let i = 0; i < 60; ++i) {
      await page.keyboard.press("Tab");
      seen.add(await visible());
    }
    seen.delete("body");
    check.equal("focus is seen", [...seen], ["yes"]);
    // The views by number, and what they answer.
    for (const [key, view] of [["2", "timeline"], ["3", "steps"],
        ["4", "layers"], ["5", "modules"], ["6", "ops"], ["7", "roofline"],
        ["8", "kernels"], ["9", "host"], ["0", "health"], ["1", "overview"]]) {
      await press(page, key, view);
      check.equal(`key ${key}`, await page.evaluate(() =>
        document.documentElement.dataset.ready), view);
    }
    // Which kernel is it: search, Enter, count, event.
    await page.keyboard.press("/");
    await until(page, () => document.activeElement.dataset.k === "search");
    await page.keyboard.type("name:gemm");
    // Enter takes the first result, also when it has not been drawn yet.
    await press(page, "Enter", "kernels");
    check.equal("search leads to the kernel", await page.evaluate(() =>
      __lamina.state().chips.map((c) => c.kind)), ["name"]);
    await press(page, "Escape", "kernels");
    await page.keyboard.press("?");
    check.true("keys are listed", await page.locator("dialog[open]").count());
    await page.keyboard.press("Escape");
    check.equal("and closed", await page.locator("dialog[open]").count(), 0);
    // Focus stays where it was after a redraw.
    await press(page, "6", "ops");
    await page.locator("[data-k='ops.sort.calls']").focus();
    await press(page, "Enter", "ops");
    check.equal("focus after sorting", await page.evaluate(() =>
      document.activeElement.dataset.k), "ops.sort.calls");
  },

  "exports": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=roofline&fam=gemm" });
    const save = async (name) => {
      const [file] = await Promise.all([page.waitForEvent("download"),
        page.getByRole("button", { name, exact: true }).first().click()]);
      return readFileSync(await file.path());
    };
    for (const view of ["roofline", "layers", "modules"]) {
      await go(page, `#v=${view}&fam=gemm`, view);
      const text = (await save("SVG")).toString("utf8");
      check.true(`${view}: svg`, text.startsWith("<svg") &&
        !/<script|href|onload|var\(/.test(text) && text.includes("gemm") &&
        text.length > 2000);
    }
    await go(page, "#v=timeline", "timeline");
    const png = await save("PNG");
    check.true("png", png.subarray(1, 4).toString() === "PNG" &&
               png.length > 10_000);
  },
});
export default tests;
