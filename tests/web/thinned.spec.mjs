// SPDX-License-Identifier: Apache-2.0
//
// Pages of traces with more device events than a page may hold, made with a
// small limit: every sum is that of all events.
import { go, ns, open, pageOf, tablesOf, traces } from "./harness.mjs";

const enc = encodeURIComponent;
const kColumns = [["kernel", "kernels"], ["op", "op_efficiency"],
  ["layer", "layers"], ["pass", "passes"], ["step", "steps"]];

function total(rows) {
  return rows.reduce((sum, row) => sum + ns(row.kernel_time_us), 0);
}
const selection = (page) => page.evaluate(() => __lamina.selection());

async function sumsAreThoseOfTheTables(check, page, tables, what) {
  for (const [column, name] of kColumns) {
    const rows = tables(name);
    const found = await page.evaluate(async ([c, size, table]) => {
      await __lamina.model.require([table]);
      return [...__lamina.sums(c, size).time];
    }, [column, rows.length + 2, name]);
    check.equal(`${what}: ${name}`, found.slice(1, rows.length + 1),
                rows.map((row) => ns(row.kernel_time_us)));
  }
}

async function columnsHoldEverything(check, page, tables, what) {
  const found = await page.evaluate(() => __lamina.model.lanes.map((_, lane) =>
    __lamina.pyramid(lane).map(({ busy, match }) =>
      [busy, match].map((times) => times.reduce((a, b) => a + b, 0)))));
  const all = total(tables("kernels"));
  for (let level = 0; level < found[0].length; ++level) {
    for (const part of [0, 1]) {
      check.equal(`${what}: level ${level}`, found.reduce((sum, levels) =>
        sum + levels[Math.min(level, levels.length - 1)][part], 0), all);
    }
  }
}

const tests = {};
// With the smaller limit merged rows do not say their layer.
for (const limit of [150, 20]) {
  tests[`sums of a page with at most ${limit} events`] = async (check) => {
    let drops = 0;
    for (const [name, trace] of Object.entries(traces).slice(0, 3)) {
      const tables = tablesOf(trace);
      const kernels = tables("kernels");
      const events = kernels.reduce((n, row) => n + Number(row.count), 0);
      const page = await open(pageOf(trace, "--html-max-events", `${limit}`),
                              { hash: "#v=timeline" });
      const held = await page.evaluate(() => ({
        single: __lamina.model.device.count,
        dropped: __lamina.model.thinned.dropped }));
      check.true(`${name}: ${held.single} single events`,
                 held.single > 0 && held.single < events);
      check.equal(`${name}: all`, await selection(page),
                  { count: events, time: total(kernels) });
      drops += held.dropped.length;
      check.true(`${name}: the timeline says so`, (await page.locator("main")
        .innerText()).includes("and those around findings"));
      await columnsHoldEverything(check, page, tables, name);
      await sumsAreThoseOfTheTables(check, page, tables, name);

      const { kernel, family } = kernels[0];
      const under = async (hash, rows) => {
        await go(page, "#v=kernels&" + hash, "kernels");
        check.equal(`${name}: ${hash}`, (await selection(page)).time,
                    total(rows));
      };
      await under("cat=" + enc(family),
                  kernels.filter((row) => row.family === family));
      if (kernel.length < 800) {
        await under("not.name=" + enc(kernel),
                    kernels.filter((row) => row.kernel !== kernel));
      }
      await go(page, "#v=health", "health");
      check.true(`${name}: trace health says so`, (await page.locator("main")
        .innerText()).includes(`holds ${held.single} of ${events} device`));
      await page.context().close();
    }
    if (limit < 100) check.true("merged rows without layers", drops > 0);
  };

  tests[`views of a page with at most ${limit} events`] = async (check) => {
    const file = pageOf(traces.train, "--html-max-events", `${limit}`);
    const page = await open(file, { hash: "#v=timeline&t=0..1000000000000" });
    const { count, single } = await page.evaluate(() => ({
      count: __lamina.selection().count,
      single: __lamina.model.device.count }));
    check.equal("a filter by time sees single events", count, single);
    check.true("and says so", (await page.locator("#singles").innerText())
      .includes(`sees the ${single} single events`));
    // A family is drawn alone: its columns, not only its single events.
    await go(page, "#v=timeline&fam=gemm", "timeline");
    const [busy, match] = await page.evaluate(() => {
      const [level] = __lamina.pyramid(0);
      return [level.busy, level.match].map((t) => t.reduce((a, b) => a + b, 0));
    });
    check.true("columns follow the family", match > 0 && match < busy);
    for (const view of ["overview", "layers", "modules", "ops", "kernels",
                        "roofline", "tables"]) {
      await go(page, "#v=" + view, view);
      check.true(view, (await page.locator("main").innerText()).length > 50);
    }
    const uid = await page.evaluate(() => __lamina.model.device.uid[0]);
    await go(page, `#v=timeline&sel=${uid}`, "timeline");
    check.true("an event", await page.locator("aside").innerText());
    await page.context().close();
  };
}
export default tests;
