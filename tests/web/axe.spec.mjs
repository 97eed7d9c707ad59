// SPDX-License-Identifier: Apache-2.0
//
// axe-core on every view: the rules of WCAG 2.0, 2.1 and 2.2, A and AA. What
// it cannot see (names of canvases, order of focus, text in drawings) is
// checked in access.spec.mjs.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { censusPage } from "./dumps.mjs";
import { act, fromPackages, go, open, pageOf, press, root, traces, written }
  from "./harness.mjs";

const kAxe = readFileSync(fromPackages("axe-core/axe.min.js"), "utf8");
const rank = (n) => join(root, `samples/ranks/rank${n}.json.gz`);
const kPages = {
  report: () => pageOf(traces.train),
  diff: () => written("diff", rank(0), rank(2), "--format", "html"),
  ranks: () => written("ranks", join(root, "samples/ranks"), "--format",
                       "html"),
  fusions: censusPage,
  memory: () => written("memory", join(root, "samples/memory/train.pickle"),
                        "--format", "html"),
};

const kWidths = [1280, 390];
// The themes differ in colours alone, so the second one needs only the rules
// about them, and one width: no colour depends on it.
const kRules = {
  light: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
                                 "wcag22a", "wcag22aa"] },
  dark: { type: "rule", values: ["color-contrast", "link-in-text-block"] },
};

async function openWithAxe(file) {
  const page = await open(file, { width: kWidths[0] });
  // The policy of the page lets nothing else in; this goes around it.
  await page.evaluate(kAxe);
  return page;
}

// What is wrong: the rule, and where.
async function violations(page, theme) {
  return page.evaluate(async (runOnly) => {
    const { violations } = await axe.run(document, { runOnly,
      resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => [id, nodes.length,
      ...nodes.slice(0, 3).map((node) => `${node.target}: ` +
        node.failureSummary.replace(/\s+/g, " ").slice(0, 160))]);
  }, kRules[theme]);
}

async function inTheme(check, page, theme, what) {
  const { width } = page.viewportSize();
  check.equal(`${what} ${theme} ${width}`, await violations(page, theme), []);
}
// `shown` is the view, as it stands, in both themes.
async function inBothThemes(check, page, shown, what = shown) {
  await inTheme(check, page, "light", what);
  if (page.viewportSize().width !== kWidths[0]) return;
  await act(page, shown, () => page.emulateMedia({ colorScheme: "dark" }));
  await inTheme(check, page, "dark", what);
  await act(page, shown, () => page.emulateMedia({ colorScheme: "light" }));
}

async function widen(page, width) {
  if (page.viewportSize().width === width) return;
  await act(page, undefined, () =>
    page.setViewportSize({ width, height: 860 }));
}

const tests = {};
for (const [name, file] of Object.entries(kPages)) {
  tests[`views of ${name}`] = async (check) => {
    const page = await openWithAxe(file());
    const ids = await page.evaluate(() =>
      [...document.querySelectorAll("[role=tab]")].map((tab) =>
        tab.dataset.k.slice("tab.".length)));
    check.true("has views", ids.length >= 3);
    for (const width of kWidths) {
      await widen(page, width);
      for (const id of ids) {
        await go(page, "#v=" + id, id);
        await inBothThemes(check, page, id);
      }
    }
  };
}

tests["chips, an open row, an event, results, the keys"] = async (check) => {
  const page = await openWithAxe(pageOf(traces.train));
  const uid = await page.evaluate(async () => {
    await __lamina.model.require(["device"]);
    return __lamina.model.device.uid[0];
  });
  for (const width of kWidths) {
    await widen(page, width);
    await go(page, "#v=ops&fam=gemm&not.fam=norm&dur=>1000", "ops");
    await act(page, "ops", () => page.locator("main .open").first().click());
    check.true("an open row", await page.locator("tr.detail").count());
    await inBothThemes(check, page, "ops", "an open row");
    await go(page, `#v=timeline&sel=${uid}`, "timeline");
    check.true("an event", await page.locator("aside dl").isVisible());
    await inBothThemes(check, page, "timeline", "an event");
    await press(page, "Escape", "timeline");
    await page.locator("[data-k=search]").fill("gemm");
    await page.locator(".results li").first().waitFor();
    await inTheme(check, page, "light", "results");
    await page.keyboard.press("Escape");
    await page.locator("[data-k=help]").click();
    await inTheme(check, page, "light", "the keys");
    await page.keyboard.press("Escape");
  }
};
export default tests;
