// SPDX-License-Identifier: Apache-2.0
//
// Pages of other commands: diff, ranks, the graph of a layer.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import { folder, go, open, ready, root, run } from "./harness.mjs";

const ranks = join(root, "samples/ranks");
const rank = (n) => join(ranks, `rank${n}.json.gz`);

function made(name, ...args) {
  const out = join(folder, name);
  run(...args, "-o", out);
  return out;
}
const shots = process.env.LAMINA_SHOTS;
async function picture(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, name + ".png") });
}

const tests = {
  "a trace with itself": async (check) => {
    const page = await open(made("same.html", "diff", rank(0), rank(0),
                                 "--format", "html"));
    check.equal("view", await page.evaluate(() =>
      document.documentElement.dataset.ready), "diff");
    const sums = await page.locator("[data-sum]").allTextContents();
    check.true("no difference", sums.every((s) => s.includes("rows 0 =")));
    check.equal("nothing is more", await page.locator("td .more").count(), 0);
    check.equal("nothing is less", await page.locator("td .less").count(), 0);
  },

  "two ranks": async (check) => {
    const page = await open(made("diff.html", "diff", rank(0), rank(2),
                                 "--format", "html"));
    await picture(page, "diff-light-1280");
    const json = JSON.parse(run("diff", rank(0), rank(2), "--format",
                                "json"));
    const ns = (us) => Math.round(us * 1000);
    const shown = (list) => list.reduce((sum, row) => sum + ns(row.delta_us),
                                        0);
    for (const name of ["diff_causes", "diff_ops", "diff_kernels"]) {
      const found = await page.evaluate((n) => {
        const t = __lamina.model.table(n);
        let sum = 0;
        for (let row = 0; row < t.rows; ++row) sum += t.num(row, "delta_us");
        return { rows: t.rows, sum };
      }, name);
      check.equal(name, found, { rows: json.tables[name].length,
                                 sum: shown(json.tables[name]) });
    }
    const [a, b] = json.tables.diff_totals;
    check.equal("causes add up to the difference",
      shown(json.tables.diff_causes), ns(b.total_us) - ns(a.total_us));
    const first = json.tables.diff_causes[0];
    const line = await page.locator("main tbody tr").first().textContent();
    check.true("largest first", line.startsWith(first.cause));
    check.true("arrow and sign", /[\u25b2\u25bc] [+\u2212]/.test(line));
    const rows = () => page.locator("main tbody tr").count();
    const before = await rows();
    await go(page, "#v=diff&o.diff.least=100us", "diff");
    check.true("a threshold hides rows", await rows() < before);
    await go(page, "#v=diff&o.diff.worse=1", "diff");
    check.equal("only regressions", await page.locator("td .less").count(), 0);
    await go(page, "#v=diff&o.diff.swap=1", "diff");
    const swapped = await page.locator("main tbody tr").first().textContent();
    check.true("swapped", /[\u25b2\u25bc]/.exec(swapped)[0] !==
               /[\u25b2\u25bc]/.exec(line)[0]);
  },

  "ranks": async (check) => {
    const page = await open(made("ranks.html", "ranks", ranks, "--format",
                                 "html"));
    await picture(page, "ranks-light-1280");
    const json = JSON.parse(run("ranks", ranks, "--format", "json"));
    check.true("says who", (await page.locator("main").innerText())
      .includes(json.notes.find((n) => n.id === "straggler").text.slice(1)));
    const sum = await page.evaluate(() => {
      const t = __lamina.model.table("collective_waits");
      let ns = 0;
      for (let row = 0; row < t.rows; ++row) ns += t.num(row, "wait_us");
      return ns;
    });
    check.equal("waits", sum, json.tables.collective_waits.reduce((s, row) =>
      s + Math.round(row.wait_us * 1000), 0));
    const canvas = page.locator("canvas.heat");
    const box = await canvas.boundingBox();
    // The darkest cell is the longest wait, the palest none.
    const cells = await page.evaluate(() => {
      const c = document.querySelector("canvas.heat");
      const wide = (c.width - 80) / 8;
      const { data } = c.getContext("2d").getImageData(
        Math.round(78 + 4.5 * wide), 0, 1, 60);
      const at = (y) => data[4 * y] + data[4 * y + 1] + data[4 * y + 2];
      return { long: at(16), none: at(56) };
    });
    check.true("dark is long", cells.long < cells.none);
    await canvas.click({ position: { x: 78 + (box.width - 80) * 4.5 / 8,
                                     y: 20 } });
    await ready(page, "ranks");
    const id = await page.evaluate(() =>
      __lamina.state().options["ranks.col"]);
    check.equal("click chooses a collective", id, "4");
    const call = json.tables.collectives.find((row) => String(row.id) === id);
    check.true("names the late rank", (await page.locator("main").innerText())
      .includes(`Rank ${call.late_rank} comes last`));
    await canvas.focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForTimeout(60);
    await ready(page, "ranks");
    check.equal("arrows walk", await page.evaluate(() =>
      __lamina.state().options["ranks.col"]), "5");
    await go(page, "#v=ranks&o.ranks.by=steps", "ranks");
    await picture(page, "ranks-steps-light-1280");
  },

  "graph of a layer": async (check) => {
    const dump = join(process.env.LAMINA_SHARED ?? join(root, "..", "shared"),
                      "dumps/mixtral_4l_moe_symbolic");
    if (!existsSync(dump)) {
      check.true("skipped: no dumps", true);
      return;
    }
    const out = join(folder, "layer.json");
    run("graph", "layer", dump, "-n", "1", "--render", "html", "-o", out);
    const { readFileSync } = await import("node:fs");
    const json = JSON.parse(readFileSync(out, "utf8"));
    const page = await open(join(folder, "layer.html"));
    await picture(page, "graph-light-1280");
    const drawn = await page.evaluate(() =>
      [...document.querySelectorAll("[data-node]")].map((e) => {
        const r = e.querySelector("rect").getBBox();
        return { id: e.dataset.node, x: r.x, y: r.y, w: r.width,
                 h: r.height };
      }));
    const ids = new Set(drawn.map((d) => d.id));
    check.equal("every node is drawn",
                json.nodes.filter((n) => !ids.has(n.id)).length, 0);
    let overlaps = 0;
    for (const [i, a] of drawn.entries()) {
      for (const b of drawn.slice(i + 1)) {
        overlaps += a.x < b.x + b.w - 0.5 && b.x < a.x + a.w - 0.5 &&
          a.y < b.y + b.h - 0.5 && b.y < a.y + a.h - 0.5;
      }
    }
    check.equal("boxes overlap", overlaps, 0);
    const last = json.nodes.at(-1);
    await go(page, `#v=graph&o.graph.node=${last.id}&o.graph.from=` +
      json.nodes[0].id, "graph");
    const path = await page.evaluate(() =>
      [...document.querySelectorAll(".node.path, .node.chosen")]
        .map((e) => e.dataset.node));
    check.true("a path", path.length >= 2 && path.includes(last.id) &&
               path.includes(json.nodes[0].id));
    const edges = new Set(json.edges.map((e) => `${e.from} ${e.to}`));
    const inOrder = json.nodes.map((n) => n.id).filter((id) =>
      path.includes(id));
    check.true("along edges", inOrder.slice(1).every((id, i) =>
      edges.has(`${inOrder[i]} ${id}`)));
    await go(page, "#v=graph&o.graph.views=0", "graph");
    check.true("views can be hidden", await page.locator("[data-node]")
      .count() < drawn.length);
  },
};
export default tests;
