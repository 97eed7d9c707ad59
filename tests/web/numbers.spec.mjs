// SPDX-License-Identifier: Apache-2.0
//
// Sums on the page equal the tables of the same run, in nanoseconds, without
// filter and under filters of each kind.
import { go, ns, open, pageOf, tablesOf, traces } from "./harness.mjs";

function sum(rows, column = "kernel_time_us") {
  return rows.reduce((total, row) => total + ns(row[column]), 0);
}

const selection = (page) => page.evaluate(() => __lamina.selection());
const sums = (page, column, size) => page.evaluate(([c, s]) => {
  const { time, count } = __lamina.sums(c, s);
  return { time: [...time], count: [...count] };
}, [column, size]);

const enc = encodeURIComponent;

const tests = {};
for (const [name, trace] of Object.entries(traces)) {
  tests[`${name}: sums and filters`] = async (check) => {
    const tables = tablesOf(trace);
    const page = await open(pageOf(trace), { hash: "#v=kernels" });
    const kernels = tables("kernels");
    const all = sum(kernels);
    check.equal("all events", await selection(page), {
      count: kernels.reduce((n, row) => n + Number(row.count), 0), time: all });
    for (const [column, table] of [["kernel", "kernels"],
        ["op", "op_efficiency"], ["layer", "layers"], ["pass", "passes"],
        ["step", "steps"]]) {
      const rows = tables(table);
      const { time } = await sums(page, column, rows.length + 2);
      check.equal(table, time.slice(1, rows.length + 1),
                  rows.map((row) => ns(row.kernel_time_us)));
    }

    const under = async (what, hash, expected) => {
      await go(page, "#v=kernels&" + hash, "kernels");
      check.equal(what, (await selection(page)).time, expected);
    };
    for (const { kernel } of kernels.slice(0, 5)) {
      if (kernel.length > 800) continue;
      await under(`kernel ${kernel}`, "name=" + enc(kernel),
        sum(kernels.filter((row) => row.kernel === kernel)));
      await under(`not ${kernel}`, "not.name=" + enc(kernel),
        all - sum(kernels.filter((row) => row.kernel === kernel)));
    }
    const family = kernels[0].family;
    await under("category", "cat=" + enc(family),
      sum(kernels.filter((row) => row.family === family)));
    const groups = new Map(tables("op_categories").map((row) =>
      [row.category, row.group]));
    const group = groups.get(family);
    if (group) {
      await under("family", "fam=" + enc(group),
        sum(kernels.filter((row) => groups.get(row.family) === group)));
    }
    const { op } = kernels.find((row) => row.op !== "") ?? {};
    if (op) {
      await under("op", "op=" + enc(op),
        sum(kernels.filter((row) => row.op === op)));
    }
    for (const row of tables("op_efficiency").slice(0, 5))
      await under(`row ${row.op}`, "row=" + row.first_uid,
                  ns(row.kernel_time_us));
    const modules = tables("modules").filter((row) => row.depth < 3);
    for (const row of modules.slice(0, 8))
      await under(`module ${row.module}`, "mod=" + enc(row.module),
                  ns(row.kernel_time_us));
    const layers = tables("layers");
    for (const row of layers.slice(0, 3))
      await under(`layer ${row.layer}`, "layer=" + row.first_uid,
                  ns(row.kernel_time_us));
    if (layers.length > 3) {
      await under("two layers", `layer=${layers[1].first_uid},` +
        layers[2].first_uid, sum(layers.slice(1, 3)));
    }
    for (const row of tables("passes").slice(0, 3))
      await under(`pass ${row.pass}`, "pass=" + row.pass,
                  ns(row.kernel_time_us));
    const short = 10_000;
    const launchers = await page.evaluate((limit) => {
      const { dur } = __lamina.model.device;
      return dur.reduce((n, d) => n + (d < limit ? d : 0), 0);
    }, short);
    await under("short events", "dur=<" + short, launchers);
  };

  tests[`${name}: what is written on the page`] = async (check) => {
    const tables = tablesOf(trace);
    const page = await open(pageOf(trace), { hash: "#v=overview" });
    const timeline = Object.fromEntries(tables("gpu_timeline")
      .filter((row) => row.device === "all").map((row) => [row.type, row]));
    const unit = { s: 1e9, ms: 1e6, "\u00b5s": 1e3, ns: 1 };
    for (const type of ["total_time", "busy_time", "idle_time"]) {
      const text = await page.locator(`[data-sum=${type}]`).textContent();
      const [number, name] = text.split(" ");
      const found = Number(number) * unit[name];
      const expected = ns(timeline[type].time_us);
      check.true(`${type} ${text}`,
                 Math.abs(found - expected) <= expected * 1e-3);
    }
    // Copies equal the files of the engine byte for byte, in their order.
    await page.context().grantPermissions(["clipboard-read",
                                           "clipboard-write"]);
    for (const [view, table] of [["kernels", "kernels"], ["ops",
        "op_efficiency"]]) {
      await go(page, "#v=" + view, view);
      const rows = tables(table);
      const ids = await page.evaluate((t) => __lamina.model.table(t).rows,
                                      table);
      check.equal(`${view}: rows`, ids, rows.length);
    }
    for (const table of ["gaps", "gpu_timeline", "kernels", "op_efficiency",
                         "trace_health", "modules", "layers"]) {
      if (tables(table).length === 0) continue;
      await go(page, `#v=tables&o.tables.name=${table}`, "tables");
      const [download] = await Promise.all([page.waitForEvent("download"),
        page.getByRole("button", { name: "Download" }).click()]);
      const { readFileSync } = await import("node:fs");
      const text = readFileSync(await download.path(), "utf8");
      check.true(`${table}: file equals the engine's`,
                 text === tables.text(table));
    }
  };
}
export default tests;
