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
const digits = (n) => n.toLocaleString("en-US");
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

// The stack of each single event, outermost frame first, by its number.
async function stacksOf(page) {
  return new Map(await page.evaluate(async () => {
    const { model } = __lamina;
    await model.require(["device", "#frames"]);
    const frames = model.columns("frames");
    const { device } = model;
    const stack = (at) => at === 0 ? ""
      : stack(frames.get("parent")[at - 1]) + "/" +
        model.text(frames.get("name")[at - 1]);
    return Array.from({ length: device.count }, (_, i) =>
      [device.uid[i], frames ? stack(device.stack[i]) : ""]);
  }));
}

// The names of the host events that launched the single events.
async function launchesOf(page) {
  return new Map(await page.evaluate(async () => {
    const { model } = __lamina;
    await model.require(["device", "host"]);
    const { device, host } = model;
    return Array.from({ length: device.count }, (_, i) => [device.uid[i],
      device.launch[i] === 0 ? "" : host.uid[device.launch[i] - 1]]);
  }));
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
        .innerText()).includes(`holds ${digits(held.single)} of ` +
          `${digits(events)} device`));
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

// Wherever a number counts more events than its link can lead to.
tests["every view says how many events it holds"] = async (check) => {
  const page = await open(pageOf(traces.train, "--html-max-events", "20"));
  const held = () => page.locator("#held").innerText();
  const words = (all, what, singles) => `Numbers count all ${digits(all)} ` +
    `${what}. One by one this page holds ${digits(singles)} of them`;
  const { total: all, count: singles } = await page.evaluate(async () => {
    await __lamina.model.require(["device"]);
    const { total, count } = __lamina.model.device;
    return { total, count };
  });
  for (const view of ["overview", "timeline", "steps", "layers", "modules", "ops",
                      "roofline", "kernels"]) {
    await go(page, "#v=" + view, view);
    check.true(view, (await held()).startsWith(
      words(all, "device events", singles)));
    await go(page, `#v=${view}&fam=gemm`, view);
    const passing = await page.evaluate(() => {
      const { device, families } = __lamina.model;
      let passing = 0;
      for (let i = 0; i < device.count; ++i)
        passing += families[device.family[i]].group === "gemm";
      return passing;
    });
    // Steps are shown whole.
    check.true(`${view}: filtered`, (await held()).startsWith(
      view === "steps" ? words(all, "device events", singles)
        : words((await selection(page)).count, "events that pass the filter",
                passing)));
  }
  // A chart of some of the events would be wrong.
  check.equal("no lengths of some events",
              await page.locator(".spark").count(), 0);
  const whole = await open(pageOf(traces.train), { hash: "#v=kernels&fam=gemm" });
  check.equal("a whole page says nothing",
              await whole.locator("#held").count(), 0);
  check.true("and has lengths", await whole.locator(".spark").count() > 0);
};

tests["what stands above the single events"] = async (check) => {
  const whole = await open(pageOf(traces.train));
  const page = await open(pageOf(traces.train, "--html-max-events", "150"));
  for (const read of [stacksOf, launchesOf]) {
    const [all, some] = [await read(whole), await read(page)];
    check.equal(read.name, [...some], [...some.keys()].map((uid) =>
      [uid, all.get(uid)]));
    check.true(`${read.name}: there are some`,
               [...some.values()].filter((above) => above !== "").length > 9);
  }
  const hosts = (of) => of.evaluate(() => __lamina.model.host.count);
  check.true("fewer host events", await hosts(page) < await hosts(whole));
  await go(page, "#v=health", "health");
  check.true("which trace health says", (await page.locator("main")
    .innerText()).includes("host events that launched none of the others"));
  // A queue of some events of many would be wrong.
  await go(whole, "#v=timeline", "timeline");
  await go(page, "#v=timeline", "timeline");
  const queue = async (of) => (await of.locator("main").textContent())
    .includes("Queued GPU");
  check.equal("a queue of all events, none of some",
              [await queue(whole), await queue(page)], [true, false]);
};

// Merged rows without layers: their groups are those of the table.
tests["layers of merged rows"] = async (check) => {
  const page = await open(pageOf(traces.train, "--html-max-events", "20"),
                          { hash: "#v=layers" });
  check.true("no layers in merged rows", await page.evaluate(() =>
    __lamina.model.thinned.dropped.includes("layer")));
  const colors = await page.evaluate(() =>
    new Set([...document.querySelectorAll("a[data-layer] rect")]
      .map((rect) => rect.getAttribute("fill"))).size);
  check.true("bars have parts", colors > 3);
};
export default tests;
