// SPDX-License-Identifier: Apache-2.0
//
// Steps: bars against the engine's table, and two steps beside each other,
// whose causes add up to the difference.
import { click, go, ns, open, pageOf, tablesOf, traces } from "./harness.mjs";

const stepsOf = (trace) => tablesOf(trace)("steps");
const timeOf = (row) => ns(row.busy_us) + ns(row.idle_us);
const compared = (page, a, b) => page.evaluate(([x, y]) =>
  __lamina.compareSteps(x, y), [a, b]);
const sum = (list, side) => list.reduce((all, c) => all + c.ns[side], 0);

const tests = {};
for (const name of ["train", "serve", "moe"]) {
  tests[`sums of ${name}`] = async (check) => {
    const rows = stepsOf(traces[name]);
    const page = await open(pageOf(traces[name]));
    await page.evaluate(() => __lamina.model.require(["steps", "device",
                                                      "kernels"]));
    const own = rows.map((row, i) => ({ ...row, i }))
      .filter((row) => row.step !== "" && Number(row.kernels) > 0);
    for (let k = 0; k < own.length; ++k) {
      const [a, b] = [own[k], own[(k + 1) % own.length]];
      const causes = await compared(page, a.i, b.i);
      const of = (kind) => causes.filter((c) => c.kind === kind);
      for (const [side, row] of [a, b].entries()) {
        check.equal(`kernel time of ${row.name}`, sum(of("kernel"), side),
                    ns(row.kernel_time_us));
        check.equal(`idle time of ${row.name}`, sum(of("idle"), side),
                    ns(row.idle_us));
        check.equal(`all of ${row.name}`, sum(causes, side), timeOf(row));
      }
    }
  };
}

export default {
  ...tests,

  "bars are the table": async (check) => {
    const page = await open(pageOf(traces.serve), { hash: "#v=steps" });
    const rows = stepsOf(traces.serve).filter((row) => row.step !== "");
    const bars = page.locator("[data-step]");
    check.equal("a bar for each", await bars.count(), rows.length);
    const heights = await bars.evaluateAll((list) => list.map((bar) =>
      [...bar.querySelectorAll("rect")].slice(0, -1).reduce((all, rect) =>
        all + Number(rect.getAttribute("height")), 0)));
    const most = Math.max(...rows.map(timeOf));
    const tall = Math.max(...heights);
    check.true("as high as they are long", heights.every((height, i) =>
      Math.abs(height / tall - timeOf(rows[i]) / most) < 0.01));
    await go(page, "#v=steps&o.steps.order=time", "steps");
    const order = await bars.evaluateAll((list) =>
      list.map((bar) => Number(bar.dataset.step)));
    const times = order.map((at) => timeOf(rows[at]));
    check.true("by time", times.every((time, i) => i === 0 ||
                                      time <= times[i - 1]));
  },

  "one step beside the usual one, then two": async (check) => {
    const page = await open(pageOf(traces.serve), { hash: "#v=steps" });
    const words = page.locator("[data-steps=compare]");
    check.equal("nothing is chosen", await words.count(), 0);
    await click(page, page.locator("[data-step='4']"), "steps");
    // Decode steps have other kernels than prefill.
    check.true("beside steps with its kernels",
      /median of the 5 others with the same kernels/.test(
        await words.textContent()));
    await click(page, page.locator("[data-step='0']"), "steps");
    check.equal("two are chosen", await page.evaluate(() =>
      __lamina.state().options["steps.pick"]), "4,0");
    check.equal("both are marked", await page.locator(
      "[data-step][aria-current]").evaluateAll((list) =>
        list.map((bar) => bar.dataset.step).sort()), ["0", "4"]);
    check.true("which is longer", /takes [\d.]+ ms more than/.test(
      await words.textContent()));
    const causes = await compared(page, 4, 0);
    const changes = causes.map((c) => c.ns[1] - c.ns[0])
      .sort((a, b) => Math.abs(b) - Math.abs(a));
    const shown = await page.locator(".fall b").allTextContents();
    check.true("the waterfall begins with the largest", shown.length > 2 &&
      shown[0].includes("+" + (changes[0] / 1e6).toFixed(2)));
    const rows = () => page.locator("caption:text('Why ') ~ tbody > tr").count();
    const few = await rows();
    await click(page, page.locator("[data-k='stepcauses.all']"), "steps");
    check.equal("all causes on request", await rows(),
      causes.filter((c) => c.ns[0] !== 0 || c.ns[1] !== 0).length);
    check.true("few without", few < await rows());
    await click(page, page.locator("[data-step='2']"), "steps");
    check.equal("a third one takes the place of the first",
      await page.evaluate(() => __lamina.state().options["steps.pick"]),
      "0,2");
  },

  "a number leads to its events": async (check) => {
    const page = await open(pageOf(traces.serve),
                            { hash: "#v=steps&o.steps.pick=4,0" });
    const causes = await compared(page, 4, 0);
    const best = causes.filter((c) => c.kind === "kernel").sort((a, b) =>
      Math.abs(b.ns[1] - b.ns[0]) - Math.abs(a.ns[1] - a.ns[0]))[0];
    const cells = page.locator("caption:text('Why ') ~ tbody > tr")
      .first().locator("td");
    for (const [column, side] of [[1, 0], [3, 1]]) {
      await go(page, "#v=steps&o.steps.pick=4,0", "steps");
      const link = cells.nth(column).locator("a");
      if (best.ns[side] === 0) {
        check.equal("no link for nothing", await link.count(), 0);
        continue;
      }
      await click(page, link, "timeline");
      check.equal(`events of side ${side}`, await page.evaluate(() =>
        __lamina.selection().time), best.ns[side]);
    }
  },

  "addresses that do not fit": async (check) => {
    const page = await open(pageOf(traces.serve));
    for (const pick of ["99", "x", "-1,2", "1,1", "1,2,3", "1e3", ",,"]) {
      await go(page, `#v=steps&o.steps.pick=${pick}`, "steps");
      check.true(`pick ${pick}`,
                 await page.locator("[data-step]").count() > 0);
    }
    const other = await open(pageOf(traces.train), { width: 390 });
    await go(other, "#v=steps&o.steps.pick=0,1", "steps");
    check.true("no sideways scroll at 390", await other.evaluate(() =>
      document.documentElement.scrollWidth <= innerWidth));
  },
};
