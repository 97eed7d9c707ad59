// SPDX-License-Identifier: Apache-2.0
//
// Layers: marks of the bars, their order, two kinds of layers and two layers
// beside each other, against the engine's tables.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { act, click, folder, go, ns, open, pageOf, parseCsv, root, run, shared,
         traces, written } from "./harness.mjs";

const selection = (page) => page.evaluate(() => __lamina.selection());

// A replay of gpt-oss: layers with all of the context and with a window of it
// take turns, so they are two kinds of one stack.
const replay = join(shared, "traces/vllm-decode-full");
const hasReplay = existsSync(replay);
const inputs = [[traces.moe], ...hasReplay
  ? [[join(replay, "replay.json.gz"), "--capture", join(replay, "capture")]]
  : [], ...traces.sglang ? [[traces.sglang]] : []];

let made = 0;
function layerTables(...args) {
  const out = join(folder, `layers${made++}`);
  run("layers", ...args, "--variants", "--format", "csv", "-o", out + "/");
  return (name) => parseCsv(readFileSync(join(out, name + ".csv"), "utf8"));
}
const keyOf = (row) => [row.stack, row.variant, row.type, row.stage,
  ...row.module ? [row.module] : []].join("/");
const sum = (rows) => rows.reduce((all, r) => all + ns(r.kernel_time_us), 0);

// The middle of times in ns, or the mean of the two in the middle.
const median = (times) => {
  const sorted = [...times].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half]
    : Math.round((sorted[half - 1] + sorted[half]) / 2);
};
const parent = (path) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

export default {
  "the page of lamina layers has the view": async (check) => {
    for (const [trace, ...args] of [[traces.moe], [traces.moe, "--variants"]]) {
      const page = await open(written("layers", trace, ...args, "--format",
                                      "html"));
      check.equal(`${args.join(" ")}: it opens with it`, await page.evaluate(() =>
        __lamina.state().view), "layers");
      const rows = layerTables(trace, ...args)("layers");
      const found = await page.evaluate(() => {
        const t = __lamina.model.table("layers");
        return Array.from({ length: t.rows }, (_, row) =>
          t.num(row, "kernel_time_us"));
      });
      check.equal("the rows of the command", found,
                  rows.map((row) => ns(row.kernel_time_us)));
      check.true("bars", await page.locator(".stacks [data-layer]").count() > 0);
      const tables = await page.evaluate(() =>
        __lamina.model.manifest.tables.map((t) => t.name));
      check.equal("each table once", new Set(tables).size, tables.length);
      await click(page, page.locator(".stacks [data-layer]").first(), "layers");
      check.equal("a layer beside the median", await page.locator(
        "[data-pair=compare]").count(), 1);
    }
    const decode = await open(written("layers", traces.moe, "--stage", "decode",
                                      "--format", "html"));
    check.equal("rows of one stage are tables", await decode.evaluate(() =>
      __lamina.state().view), "tables");
  },

  "the page of lamina annotate has the view": async (check) => {
    const graphs = join(root, "samples/graphs");
    const replay = join(graphs, "replay.json.gz");
    const page = await open(written("annotate", replay, "--from",
      join(graphs, "capture.json.gz"), "--format", "html"));
    check.equal("it opens with its sentence", await page.evaluate(() =>
      __lamina.state().view), "tables");
    check.true("which counts kernels", /replayed kernels/.test(
      await page.locator(".verdict").first().textContent()));
    const tables = await page.evaluate(() =>
      __lamina.model.manifest.tables.map((t) => t.name));
    check.equal("each table once", new Set(tables).size, tables.length);
    check.true("its own tables", ["annotate_levels", "annotate_kernels"]
      .every((name) => tables.includes(name)));
    await go(page, "#v=layers", "layers");
    check.true("bars of layers", await page.locator(".stacks [data-layer]")
      .count() > 0);
    await go(page, "#v=timeline", "timeline");
    check.true("events", await page.evaluate(() =>
      __lamina.model.device.count) > 0);
    const names = await open(written("annotate", replay, "--from",
      join(graphs, "capture.json.gz"), "--method", "name", "--format", "html"));
    check.equal("tags by name are tables", await names.evaluate(() =>
      __lamina.model.hasEvents), false);
  },

  "two stacks of one class": async (check) => {
    if (!traces.owlv2) return check.skip("no trace of OWLv2");
    const tables = layerTables(traces.owlv2);
    const types = tables("layer_types");
    check.equal("two kinds of one name", new Set(types.map((row) =>
      row.stack + row.variant)).size, 1);
    check.equal("at two places", new Set(types.map((row) => row.module)).size,
                2);
    const page = await open(pageOf(traces.owlv2), { hash: "#v=layers" });
    // Each is the only kind of its stack, so nothing stands beside it.
    check.equal("nothing is mixed up",
                await page.locator("[data-pair=kinds]").count(), 0);
    const heads = await page.locator(".stacks h2").allTextContents();
    check.equal("titles differ", heads.map((head) =>
      /in Owlv2(Vision|Text)Transformer_0/.exec(head)?.[1]).sort(),
      ["Text", "Vision"]);
    for (const row of types) {
      const own = tables("layers").filter((layer) =>
        layer.stack === row.stack && parent(layer.module) === row.module);
      check.equal("the median is the engine's p50",
                  median(own.map((layer) => ns(layer.kernel_time_us))),
                  ns(row.p50_us));
      const [number, unit] = [Number(row.p50_us),
                              Number(row.p50_us) >= 1000 ? "ms" : "\u00b5s"];
      const shown = (unit === "ms" ? number / 1000 : number)
        .toFixed(unit === "ms" ? 3 : 2);
      check.equal(`median ${shown} ${unit} per layer`, heads.filter((head) =>
        head.includes(`median ${shown} ${unit} per layer`)).length, 1);
      // All of the places of its kind, and no others.
      check.equal("the kernels of a kind", sum(tables("variant_kernels")
        .filter((place) => keyOf(place) === keyOf(row))),
        ns(row.kernel_time_us));
    }
  },

  "a layer and the median of its kind": async (check) => {
    const trace = traces.owlv2 ?? traces.moe;
    const layers = layerTables(trace)("layers");
    const kindOf = (row) => keyOf({ ...row, module: parent(row.module) });
    const time = (row) => ns(row.kernel_time_us);
    const rows = layers.filter((row) => kindOf(row) === kindOf(layers[0]) &&
                               row.partial !== "True")
      .sort((a, b) => time(a) - time(b));
    const middle = rows[(rows.length - 1) >> 1];
    const slowest = rows.at(-1);
    const page = await open(pageOf(trace), { hash:
      `#v=layers&layer=${slowest.first_uid}` });
    const box = page.locator("[data-pair=compare]");
    const sums = await box.locator("tbody tr").evaluateAll((list) =>
      list.map((row) => [...row.querySelectorAll("a")].map((link) =>
        Number(/sel=(\d+)/.exec(link.href)[1]))));
    const of = await page.evaluate((uids) => {
      const { device } = __lamina.model;
      const all = new Map();
      for (const uid of uids) {
        const layer = device.layer[device.uid.indexOf(uid)];
        all.set(layer, (all.get(layer) ?? 0) + device.dur[device.uid.indexOf(uid)]);
      }
      return [...all.values()];
    }, sums.flat());
    check.equal("the median beside it, kernel by kernel",
                of.sort((a, b) => a - b), [time(middle), time(slowest)]);
    const words = await box.locator(".difference").textContent();
    const percent = (100 * (time(slowest) - time(middle)) / time(middle))
      .toFixed(1);
    check.true(words, words.includes(
      `(${percent} %) longer than the median layer of its kind: +`));
    check.true("no mean of no layers",
      !(await page.locator("main").textContent()).includes("of 0 layers"));
    await go(page, `#v=layers&layer=${middle.first_uid}`, "layers");
    check.true("the median itself says so", (await box.textContent())
      .includes(`this is the median of the ${rows.length} layers of its kind`));
  },

  "kinds kernel by kernel": async (check) => {
    for (const args of inputs) {
      const page = await open(pageOf(...args), { hash: "#v=layers" });
      const tables = layerTables(...args);
      const places = tables("variant_kernels");
      const kinds = tables("layer_types");
      const found = await page.evaluate((rows) =>
        [...__lamina.sums("place", rows + 1).time], places.length);
      check.equal("time of each place", found.slice(1),
                  places.map((row) => ns(row.kernel_time_us)));
      for (const kind of kinds) {
        check.equal(`${keyOf(kind)} is the sum of its places`,
          sum(places.filter((row) => keyOf(row) === keyOf(kind))),
          ns(kind.kernel_time_us));
      }
      const shown = await page.locator("[data-k='layers.a'], [data-k='layers.b']")
        .evaluateAll((list) => list.map((select) => select.value));
      check.equal("two kinds of one stack", shown.map((key) =>
        key.split("/")[0]), [kinds[0].stack, kinds[0].stack]);
      for (const [side, key] of [["a", shown[0]], ["b", shown[1]]]) {
        const drawn = await page.locator(
          `[data-pair=kinds] [data-part^=${side}]`).evaluateAll((list) =>
          list.map((part) => Number(part.dataset.part.slice(1))));
        check.equal(`places of ${key}`, drawn, places.filter((row) =>
          keyOf(row) === key).map((row) => Number(row.position)));
      }
      const row = places.filter((r) => keyOf(r) === shown[1])
        .sort((a, b) => ns(b.kernel_time_us) - ns(a.kernel_time_us))[0];
      await click(page, page.locator(`[data-part='b${row.position}']`),
                  "timeline");
      check.equal("a box leads to its events", await selection(page),
        { count: Number(row.kernels), time: ns(row.kernel_time_us) });
    }
  },

  "kinds are chosen by the address": async (check) => {
    const kinds = layerTables(traces.moe)("layer_types");
    const [first, second] = kinds.map(keyOf);
    const chosen = (page) => page.locator(
      "[data-k='layers.a'], [data-k='layers.b']").evaluateAll((list) =>
      list.map((select) => select.value));
    const page = await open(pageOf(traces.moe), { hash: "#v=layers" +
      `&o.layers.a=${encodeURIComponent(second)}` });
    check.equal("swapped", await chosen(page), [second, first]);
    for (const bad of ["nothing", "%3Cimg%20src=x%3E", first]) {
      await go(page, `#v=layers&o.layers.b=${bad}`, "layers");
      check.equal(`B is ${bad}`, await chosen(page), [first, second]);
    }
    await go(page, "#v=layers&pass=1", "layers");
    check.true("layers under the filter are counted", (await page.locator(
      "[data-pair=kinds] .tools").first().textContent())
      .includes("Mean of 0 and of 4 layers."));
  },

  "two layers of two passes": async (check) => {
    for (const args of inputs.slice(0, 2)) {
      const layers = layerTables(...args)("layers");
      const a = layers[1];
      const b = layers.findLast((row) => row.pass !== a.pass) ?? layers.at(-1);
      const page = await open(pageOf(...args), { hash:
        `#v=layers&layer=${a.first_uid},${b.first_uid}` });
      const links = await page.locator("[data-pair=compare] td a")
        .evaluateAll((list) => list.map((link) =>
          Number(/sel=(\d+)/.exec(link.href)[1])));
      check.equal("every kernel of both has a cell", links.length,
                  Number(a.kernels) + Number(b.kernels));
      const time = await page.evaluate((uids) => {
        const { device } = __lamina.model;
        const wanted = new Set(uids);
        let all = 0;
        for (let i = 0; i < device.count; ++i)
          if (wanted.has(device.uid[i])) all += device.dur[i];
        return all;
      }, links);
      check.equal("their time", time, sum([a, b]));
      check.equal("equal places hold one family", await page.evaluate(() => {
        const { model } = __lamina;
        const table = model.table("variant_kernels");
        const of = new Map();
        for (let row = 0; row < table.rows; ++row) {
          const key = table.str(row, "stack") + table.str(row, "position");
          of.set(key, (of.get(key) ?? new Set())
            .add(table.str(row, "family")));
        }
        return [...of.values()].filter((set) => set.size > 1).length;
      }), 0);
      await go(page, "#v=layers&fam=moe&layer=" +
               `${a.first_uid},${b.first_uid}`, "layers");
      const groups = await page.locator("[data-pair=compare] tbody tr " +
        "td:nth-child(2)").allTextContents();
      check.true("under a filter only what passes",
                 groups.length > 0 && groups.every((g) => g === "moe"));
    }
  },

  "marks and order of bars": async (check) => {
    const trace = traces.owlv2 ?? traces.moe;
    const all = layerTables(trace)("layers");
    const { pass } = all[0];
    const layers = all.filter((row) => row.pass === pass);
    const page = await open(pageOf(trace),
                            { hash: `#v=layers&o.layers.pass=${pass}` });
    const bars = page.locator(".stacks [data-layer]");
    check.equal("a bar per layer", await bars.count(), layers.length);
    check.equal("a dot where the clock is a tenth above the kernels",
      await page.locator(".stacks circle").count(), layers.filter((row) =>
        ns(row.wall_us) > 1.1 * ns(row.kernel_time_us)).length);
    check.equal("a dashed frame where it is cut or unlike the others",
      await page.locator(".stacks a rect[stroke='var(--text)']").count(),
      layers.filter((row) => row.exact !== "True" || row.partial === "True")
        .length);
    await act(page, "layers", () => page.locator("[data-k='layers.order']")
      .selectOption("time"));
    const times = await page.locator(".stacks section").evaluateAll((list) =>
      list.map((s) => [...s.querySelectorAll("[data-layer]")].map((bar) =>
        Number(/([\d.]+) . median/.exec(bar.getAttribute("aria-label"))[1]))));
    check.true("the longest layer first", times.every((list) =>
      list.every((t, i) => i === 0 || t <= list[i - 1])));
  },
};
