// SPDX-License-Identifier: Apache-2.0
//
// What the panel of an event says, against the engine: the rule of its family,
// its time in the queue, and what a replayed kernel was captured from.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { folder, go, ns, open, pageOf, parseCsv, root, run, shared, tablesOf,
  traces } from "./harness.mjs";

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
