// SPDX-License-Identifier: Apache-2.0
//
// What the panel of an event says, against the engine: the rule of its family,
// its time in the queue, and what a replayed kernel was captured from.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { click, folder, go, ns, open, pageOf, parseCsv, root, run, shared,
  tablesOf, traces, until } from "./harness.mjs";

const entries = (page) => page.locator("aside dl").evaluate((list) =>
  Object.fromEntries([...list.querySelectorAll("dt")].map((head) =>
    [head.textContent, head.nextElementSibling.textContent])));
const select = async (page, uid) => {
  await go(page, `#v=kernels&sel=${uid}`, "kernels");
  return entries(page);
};

// "1.234 ms" in ns, with the four digits that people see.
function shownTime(text) {
  const [, number, unit] = /([\d.]+) (ns|\u00b5s|ms|s)/.exec(text);
  return Number(number) * { ns: 1, "\u00b5s": 1e3, ms: 1e6, s: 1e9 }[unit];
}

// Rows of a table that device events count, with the first event of each.
const counted = (page, name, column) => page.evaluate(async ([n, c]) => {
  const { model } = __lamina;
  await model.require([n, "device", "kernels"]);
  const table = model.table(n);
  const { device } = model;
  const rows = [];
  for (let row = 0; row < table.rows; ++row) {
    rows.push({ ...Object.fromEntries(table.info.columns.map(({ name }) =>
      [name, table.at(row, name)])), events: 0, time: 0, uid: -1 });
  }
  for (let i = 0; i < device.count; ++i) {
    const row = rows[device[c][i] - 1];
    if (!row) continue;
    ++row.events;
    row.time += device.dur[i];
    if (row.uid >= 0) continue;
    row.uid = device.uid[i];
    row.name = model.table("kernels").str(device.kernel[i] - 1, "kernel");
  }
  return rows;
}, [name, column]);

let made = 0;
function csv(table, ...args) {
  const out = join(folder, `panel${made++}`);
  run(...args, "--format", "csv", "-o", out + "/");
  return parseCsv(readFileSync(join(out, table + ".csv"), "utf8"));
}

const graphs = join(root, "samples/graphs");
const replays = [[join(graphs, "replay.json.gz"), join(graphs, "capture.json.gz")],
  ...["vllm-decode-full", "vllm-prefilldecode-piecewise", "xdit-flux1-sage"]
    .map((name) => join(shared, "traces", name)).filter(existsSync)
    .map((at) => [join(at, "replay.json.gz"), join(at, "capture")])];

export default {
  "the rule of the family": async (check) => {
    for (const trace of [traces.train, traces.owlv2 ?? traces.moe]) {
      const page = await open(pageOf(trace), { hash: "#v=kernels" });
      const rules = await counted(page, "family_rules", "rule");
      const all = await page.evaluate(() => __lamina.selection().time);
      check.equal("all time has a rule",
                  rules.reduce((sum, r) => sum + r.time, 0), all);
      check.equal("its rows are the events'",
        rules.map((r) => [r.events, r.time]),
        rules.map((r) => [r.kernels, r.kernel_time_us]));
      for (const by of ["op", "kernel", "copy", "collective", "none"]) {
        const rule = rules.find((r) => r.by === by);
        if (!rule) continue;
        const text = (await select(page, rule.uid))["decided by"];
        check.true(`${by}: ${text}`, by === "op" ? text.includes(rule.op)
          : by !== "kernel" || text.includes(rule.rule || "made of ops"));
        if (by !== "kernel" || rule.source !== "pattern") continue;
        const found = csv("explain", "layers", trace, "--explain", rule.name)
          .find((row) => row.table === "kernel_family");
        check.equal("the same rule as --explain",
          [rule.rule, rule.match, rule.place, rule.family],
          [found.rule, found.match, found.file, found.value]);
      }
    }
  },

  "calls of a name": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=timeline" });
    // The kernel with most calls, the third of them, by start.
    const known = await page.evaluate(() => {
      const { device, host } = __lamina.model;
      const names = __lamina.model.table("kernels").raw("kernel");
      const of = new Map();
      for (let i = 0; i < device.count; ++i) {
        const name = names[device.kernel[i] - 1];
        of.set(name, [...(of.get(name) ?? []), i]);
      }
      const rows = [...of.values()].sort((a, b) => b.length - a.length)[0];
      const byStart = [...rows].sort((a, b) => device.start[a] - device.start[b]);
      const sizes = rows.map((i) => device.dur[i]).sort((a, b) => b - a);
      const row = byStart[2];
      const launch = device.launch[row] - 1;
      return { uid: device.uid[row], calls: rows.length,
        starts: byStart.map((i) => device.start[i]),
        lengths: [device.dur[row], sizes[sizes.length >> 1], sizes[0]],
        from: host.start[launch], to: device.start[row] + device.dur[row] };
    });
    await go(page, `#v=timeline&sel=${known.uid}`, "timeline");
    const rows = await page.locator("aside .calls tbody tr").evaluateAll((list) =>
      list.map((row) => [...row.children].map((cell) => cell.textContent)));
    check.equal("this, median, slowest", rows.map(([words]) => words),
                ["this", "median", "slowest"]);
    check.true(`lengths ${rows}`, rows.every(([, length], i) =>
      Math.abs(shownTime(length) - known.lengths[i]) <= known.lengths[i] / 1000));
    // Launch and kernel.
    await click(page, page.locator("[data-k='panel.both']"), "timeline");
    const [from, to] = (await page.evaluate(() => __lamina.state())).zoom;
    check.true("launch and kernel are in one window", from <= known.from &&
      to >= known.to && to - from < 1.3 * (known.to - known.from) + 2000);
    // Every call, in order, with this one in sight.
    await click(page, page.locator("[data-k='panel.all']"), "timeline");
    check.equal("every call is a row", await page.locator(
      "[data-k='events.box'] table").getAttribute("aria-rowcount"),
      String(known.calls + 1));
    await until(page, () => {
      const row = document.querySelector("tr[aria-current]");
      const box = row?.closest(".tablebox");
      if (!box) return false;
      const [inner, outer] = [row, box].map((one) => one.getBoundingClientRect());
      return inner.top >= outer.top && inner.bottom <= outer.bottom;
    });
    const starts = (await page.locator("[data-k='events.box'] tbody tr:not(.room)")
      .evaluateAll((list) => list.map((row) => row.cells[0].textContent)))
      .map(shownTime);
    check.true("by start", starts.length > 2 && starts.every((start, i) =>
      i === 0 || start >= starts[i - 1] * 0.999));
  },

  "the host: what is around, shapes, and the next of its name": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=timeline" });
    const known = await page.evaluate(() => {
      const { device, host, hostTracks } = __lamina.model;
      const ops = __lamina.model.table("op_efficiency");
      // The op of a kernel whose launch is inside of it.
      for (let i = 0; i < device.count; ++i) {
        const [launch, op] = [device.launch[i] - 1, device.op[i] - 1];
        if (launch < 0 || op < 0 || !ops.str(op, "input_dims")) continue;
        const own = hostTracks.find((t) => launch >= t.begin && launch < t.end);
        const around = [];
        for (const t of hostTracks) {
          if (t.thread !== own.thread || t.process !== own.process) continue;
          for (let k = t.begin; k < t.end; ++k)
            if (k !== launch && host.start[k] <= host.start[launch] &&
                host.start[k] + host.dur[k] >= host.start[launch] +
                host.dur[launch]) around.push(k);
        }
        around.sort((a, b) => host.dur[a] - host.dur[b]);
        const name = (k) => __lamina.model.text(host.name[k]);
        const at = around.find((k) => name(k) === ops.str(op, "op"));
        if (at === undefined) continue;
        const same = [...host.name.keys()].filter((k) =>
          host.name[k] === host.name[launch])
          .sort((a, b) => host.start[a] - host.start[b] || a - b);
        const later = same[same.indexOf(launch) + 1];
        if (later === undefined) continue;
        return { launch: host.uid[launch], op: host.uid[at],
                 names: around.slice(0, 3).map(name), next: host.uid[later] };
      }
    });
    await go(page, `#v=timeline&sel=${known.launch}`, "timeline");
    const links = await page.locator("aside .chain a").allTextContents();
    check.equal("what is around it, the innermost first",
                links.slice(0, known.names.length), known.names);
    check.true("its end, and its place among its name",
      "end" in await entries(page) &&
      /this one is number/.test((await entries(page))["same name"]));
    await page.keyboard.press("]");
    await until(page, (uid) => __lamina.state().selected === uid,
                String(known.next));
    check.true("the next of its name", true);
    await go(page, `#v=timeline&sel=${known.op}`, "timeline");
    check.true("shapes of an op", /\d/.test((await entries(page)).shapes ?? ""));
  },

  "latency and queue": async (check) => {
    const trace = traces.owlv2 ?? traces.train;
    const page = await open(pageOf(trace), { hash: "#v=kernels" });
    const rows = tablesOf(trace)("kernels").map((row, at) => ({ ...row, at }))
      .filter((row) => Number(row.count) <= 12 && row.queue_us !== "");
    const waits = rows.filter((row) => ns(row.queue_us) > 0).slice(0, 3);
    check.true("some work waits for its stream", waits.length > 0);
    for (const row of waits) {
      const uids = await page.evaluate(async (at) => {
        await __lamina.model.require(["device"]);
        const { device } = __lamina.model;
        return [...device.kernel].flatMap((kernel, i) =>
          kernel === at + 1 ? [device.uid[i]] : []);
      }, row.at);
      check.equal("events of the row", uids.length, Number(row.count));
      let latency = 0;
      let queue = 0;
      for (const uid of uids) {
        const found = await select(page, uid);
        latency += shownTime(found.latency);
        queue += found.queue === "the stream was free" ? 0
          : shownTime(found.queue);
      }
      const close = (sum, mean) =>
        Math.abs(sum / uids.length - mean) <= 1 + mean * 5e-3;
      check.true(`latency of ${row.kernel}`,
                 close(latency, ns(row.launch_latency_us)));
      check.true(`queue of ${row.kernel}`, close(queue, ns(row.queue_us)));
    }
  },

  "what a replayed kernel was captured from": async (check) => {
    for (const [replay, capture] of replays) {
      const page = await open(pageOf(replay, "--capture", capture),
                              { hash: "#v=kernels" });
      const rows = await counted(page, "graph_attribution", "graph");
      check.equal("its rows are the events'",
        rows.map((r) => [r.events, r.time]),
        rows.map((r) => [r.kernels, r.kernel_time_us]));
      const args = ["annotate", replay, "--from", capture];
      const levels = {};
      for (const row of rows)
        levels[row.level] = (levels[row.level] ?? 0) + row.kernels;
      for (const row of csv("annotate_levels", ...args))
        check.equal(row.level, levels[row.level] ?? 0, Number(row.kernels));
      const kernels = csv("annotate_kernels", ...args);
      for (const level of Object.keys(levels)) {
        const row = kernels.findLast((k) => k.level === level);
        const found = await select(page, row.uid);
        check.true(`${level}: ${found.replayed}`,
                   found.replayed.startsWith(level + ": "));
        if (row.op)
          check.true(row.op, found["captured in"].includes(row.op));
        check.equal("alternatives are named", Number(row.alternatives) > 1 ||
          level === "ambiguous", found.alternatives !== undefined);
      }
    }
    const page = await open(pageOf(traces.train), { hash: "#v=kernels" });
    const uid = await page.evaluate(async () => {
      await __lamina.model.require(["device"]);
      return __lamina.model.device.uid[0];
    });
    check.equal("nothing about replays where there are none",
                (await select(page, uid)).replayed, undefined);
  },
};
