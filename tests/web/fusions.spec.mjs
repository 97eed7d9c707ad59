// SPDX-License-Identifier: Apache-2.0
//
// Fusions and the graphs of all layers, on dumps that are written here.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { censusPage, dumps, kHostile, kLayers, kOdd, kType, Writer } from
  "./dumps.mjs";
import { folder, go, hasShared, open, run, shared } from "./harness.mjs";
import { picture } from "./pictures.mjs";

function tables(...args) {
  return JSON.parse(run("graph", ...args, "--format", "json")).tables;
}

// Boxes of the drawing by node.
async function boxes(page) {
  return new Map(await page.evaluate(() =>
    [...document.querySelectorAll("[data-node]")].map((e) => {
      const { x, y, width, height } = e.querySelector("rect.box").getBBox();
      return [e.dataset.node, { x, y, width, height }];
    })));
}

function overlaps(found) {
  const list = [...found.values()].sort((a, b) => a.y - b.y);
  let count = 0;
  list.forEach((a, i) => {
    for (let k = i + 1; k < list.length && list[k].y < a.y + a.height - 0.5;
         ++k) {
      const b = list[k];
      count += a.x < b.x + b.width - 0.5 && b.x < a.x + a.width - 0.5;
    }
  });
  return count;
}

async function marked(page) {
  return page.evaluate(() => [...document.querySelectorAll(".node.marked")]
    .map((e) => e.dataset.node).sort());
}

const tests = {
  "matrix of rules and dumps": async (check) => {
    const { at, rules } = dumps();
    const page = await open(censusPage());
    await picture(page, "fusions-light-1280");
    const wanted = tables("census", at, "--rules", rules);
    const cells = await page.evaluate(() => {
      const t = document.querySelector("table.matrix");
      const files = [...t.tHead.rows[0].cells].slice(1).map((c) => c.title)
        .filter((title) => title !== "");
      return [...t.tBodies[0].rows].flatMap((row) => files.map((file, i) => ({
        rule: row.cells[0].textContent, file,
        text: row.cells[i + 1].textContent })));
    });
    for (const row of wanted.census_rules) {
      const cell = cells.find((c) => c.rule === row.rule &&
                              c.file === row.file);
      const near = row.near_misses > 0 ? ` +${row.near_misses}` : "";
      if (row.matches + row.near_misses > 0)
        check.equal(`${row.rule} in ${row.file}`, cell?.text,
                    `${row.matches}${near}`);
    }
    check.equal("silu_times matches in all layers but one",
      cells.filter((c) => c.rule === "silu_times").map((c) => c.text),
      ["31 +1", "0 +1"]);
    check.equal("its dump has a frame", await page.locator("td.ran").count(),
                1);
  },

  "a rule beside its places": async (check) => {
    const { at, rules } = dumps();
    const page = await open(censusPage());
    await page.locator("table.matrix tbody a", { hasText: "silu_times" })
      .click();
    const section = page.locator('[data-rule="silu_times"]');
    await section.waitFor();
    check.equal("pattern", await section.locator("pre").textContent(),
                "%a = aten.silu(%x)\n%out = aten.mul(%a, %y)");
    const rows = tables("census", at, "--rules", rules).matches
      .filter((row) => row.rule === "silu_times");
    check.equal("places", await page.evaluate(() => {
      const t = __lamina.model.table("matches");
      return Array.from({ length: t.rows }, (_, r) => t.str(r, "nodes"))
        .filter((n) => n.startsWith("silu_")).length;
    }), rows.length);
    await section.locator("tbody a", { hasText: "Graph" }).first().click();
    await page.waitForFunction(() =>
      document.documentElement.dataset.ready === "graph");
    check.equal("nodes of the first place are marked", await marked(page),
                rows[0].nodes.split(" ").sort());
    await page.goBack();
    await page.waitForFunction(() =>
      document.documentElement.dataset.ready === "fusions");
    check.true("back", await section.isVisible());
  },

  "a near miss leads to its nodes": async (check) => {
    const { at, rules } = dumps();
    const misses = tables("census", at, "--rules", rules).near_misses
      .filter((row) => row.rule === "silu_times");
    check.equal("misses", misses.map((m) => [m.layer, m.class, m.node]),
      [["7", "extra_user", "silu_7"], ["7", "extra_user", "silu_7"]]);
    const page = await open(censusPage(),
                            { hash: "#v=fusions&o.fusions.rule=silu_times" });
    const group = page.locator('[data-reason="extra_user"]');
    check.true("by reason", (await group.locator("summary").textContent())
      .includes("(2)"));
    check.true("evidence", (await group.textContent())
      .includes(misses[0].evidence));
    await group.locator("tbody a", { hasText: "silu_7" }).first().click();
    await page.waitForFunction(() =>
      document.documentElement.dataset.ready === "graph");
    await picture(page, "fusions-nearmiss-light-1280");
    check.equal("marks", await marked(page), ["mul_7", "other_7", "silu_7"]);
    check.true("layer", (await page.locator("h2").first().textContent())
      .startsWith("Layer 7 of "));
    check.true("its dump", (await page.locator('[data-k="graph.title"]').first()
      .textContent()).includes("001_export"));
  },

  "32 layers of 62 nodes": async (check) => {
    const { names } = dumps();
    check.true("2,000 nodes", names[0].length >= 32 * 60);
    const page = await open(censusPage(),
                            { hash: "#v=graph&o.graph.layer=3" });
    await picture(page, "graph-layers-light-1280");
    const third = await boxes(page);
    const mine = (all, i) => all.filter((n) => n.endsWith("_" + i));
    check.equal("every node of the layer",
                mine(names[0], 3).filter((n) => !third.has(n)), []);
    check.equal("boxes overlap", overlaps(third), 0);
    const layouts = () => page.evaluate(() => __lamina.layouts.length);
    const before = await layouts();
    for (const i of [4, 12, 31]) {
      await go(page, `#v=graph&o.graph.layer=${i}`, "graph");
      const other = await boxes(page);
      check.equal(`places of layer ${i}`, mine(names[0], i).map((n) =>
        other.get(n)), mine(names[0], 3).map((n) => third.get(n)));
    }
    check.equal("alike layers are placed once", await layouts(), before);
    // The shortest way from the gate to the end, by hand.
    await go(page, "#v=graph&o.graph.layer=3&o.graph.from=gate_3" +
             "&o.graph.node=res_3", "graph");
    const path = await page.evaluate(() =>
      [...document.querySelectorAll(".node.path, .node.chosen")]
        .map((e) => e.dataset.node));
    const ends = path.find((n) => /^b\d_12/.test(n))[1];
    const steps = Array.from({ length: 13 }, (_, k) => `b${ends}_${k}_3`);
    check.equal("path", path.sort(), ["gate_3", "silu_3", "mul_3", "down_3",
      ...steps, ends < "2" ? "join_a_3" : "join_b_3", "join_3", "slice_3",
      "res_3"].sort());
    await go(page, "#v=graph&o.graph.layer=3&o.graph.node=down_3", "graph");
    check.equal("producers and consumers", (await page.evaluate(() =>
      [...document.querySelectorAll(".node.near")].map((e) => e.dataset.node)))
      .sort(), ["mul_3", "b0_0_3", "b1_0_3", "b2_0_3", "b3_0_3"].sort());
    await go(page, "#v=graph&o.graph.layer=3&o.graph.views=0", "graph");
    check.true("views hidden", !(await boxes(page)).has("slice_3"));
    await go(page, "#v=graph&o.graph.layer=3&o.graph.q=maximum", "graph");
    check.equal("search", await page.locator(".node.found").count(), 3);
  },

  "stages hold what stays": async (check) => {
    const { names } = dumps();
    const page = await open(censusPage(),
                            { hash: "#v=graph&o.graph.layer=5" });
    const first = await boxes(page);
    await page.locator('[data-k="graph.filenext"]').click();
    await page.waitForFunction(() => location.hash.includes("graph.file=1") &&
      document.documentElement.dataset.ready === "graph");
    const second = await boxes(page);
    await picture(page, "graph-stage-light-1280");
    const here = names[1].filter((n) => n.endsWith("_5"));
    check.equal("all nodes", here.filter((n) => !second.has(n)), []);
    const same = here.filter((n) => first.has(n));
    check.equal("unchanged nodes stay", same.map((n) => second.get(n)),
                same.map((n) => first.get(n)));
    check.equal("what is new is outlined", await page.evaluate(() =>
      [...document.querySelectorAll(".node.new")].map((e) => e.dataset.node)),
      ["silu_times_5"]);
    check.true("counts", (await page.locator("main").innerText())
      .includes("1 are new (outlined) and 2 are gone"));
    check.equal("boxes overlap", overlaps(second), 0);
    await page.locator('[data-k="graph.hold"]').click();
    await page.waitForFunction(() => location.hash.includes("graph.hold=0") &&
      document.documentElement.dataset.ready === "graph");
    check.true("or alone", JSON.stringify([...await boxes(page)]) !==
               JSON.stringify([...second]));
  },

  "a layer of 2,500 nodes": async (check) => {
    const w = new Writer();
    const ends = [];
    for (let e = 0; e < 250; ++e) {
      let at = "x";
      for (let k = 0; k < 9; ++k) {
        at = w.op(`e${e}_${k}`, "auto_deploy.torch_linear_simple.default", at,
          `!model_layers_0_mlp_experts_${e}_up_proj_weight`, "None");
      }
      ends.push(at);
    }
    let last = ends[0];
    ends.slice(1).forEach((end, i) =>
      last = w.op(`sum_${i}`, "aten.add.Tensor", last, end));
    const file = join(folder, "001_export_experts.txt");
    writeFileSync(file, w.text("experts", "export", last));
    const out = join(folder, "experts.json");
    run("graph", "layer", file, "-n", "0", "--render", "html", "-o", out);
    const page = await open(join(folder, "experts.html"));
    check.equal("nodes", JSON.parse(readFileSync(out, "utf8")).nodes.length,
                2499);
    await picture(page, "graph-folded-light-1280");
    const part = page.locator("a.part");
    check.true("groups start as one box", await part.count() >= 1 &&
               (await boxes(page)).size < 50);
    await page.locator('[data-k="graph.open"]').click();
    await page.waitForFunction(() => location.hash.includes("graph.open=") &&
      document.documentElement.dataset.ready === "graph");
    const near = await boxes(page);
    await picture(page, "graph-large-light-1280");
    check.true("only what is near is drawn", near.size > 20 &&
               near.size < 2400);
    check.equal("boxes overlap", overlaps(near), 0);
    // The last node comes into the drawing when it is chosen.
    await go(page, await page.evaluate((id) =>
      location.hash + "&o.graph.node=" + id, last), "graph");
    check.true("what is chosen is drawn", (await boxes(page)).has(last));
    check.true("its producers are named", (await page.locator(".facts dd")
      .allTextContents()).includes("sum_247, e249_8"));
  },

  "candidates by saved time": async (check) => {
    const { at, rules } = dumps();
    const file = join(at, "001_export_export_to_gm.txt");
    const out = join(folder, "candidates.html");
    run("graph", "candidates", file, "--rules", rules, "--format", "html",
        "-o", out);
    const json = tables("candidates", file, "--rules", rules);
    const page = await open(out);
    await picture(page, "candidates-light-1280");
    const shown = await page.evaluate(() =>
      [...document.querySelectorAll("main section.table")[0]
        .querySelectorAll("tbody tr")].map((row) =>
        [...row.cells].map((c) => c.textContent)));
    const sorted = json.candidates.map((row) => Math.round(
      (row.saving_us ?? -1) * 1000)).sort((a, b) => b - a);
    check.equal("names in order", shown.map((row) => Math.round(
      (json.candidates.find((c) => c.candidate === row[0]).saving_us ?? -1) *
      1000)), sorted);
    check.true("how sure is written out", shown.every((row) =>
      /^(sure|possible), (estimate|bound|nothing claimed)$/.test(row[4])));
    const [first] = json.candidates.filter((c) => c.candidate ===
                                           "silu_times");
    await go(page, "#v=fusions&o.fusions.what=silu_times", "fusions");
    const section = page.locator('[data-candidate="silu_times"]');
    check.true("pattern text", (await section.locator("pre").textContent())
      .includes("aten.silu"));
    check.equal("places", await section.locator("tbody tr").count(),
                first.occurrences);
    await section.locator("tbody a").first().click();
    await page.waitForFunction(() =>
      document.documentElement.dataset.ready === "graph");
    check.equal("marks", await marked(page),
      json.candidate_places.find((p) => p.candidate === "silu_times").nodes
        .split(" ").sort());
  },

  "kernels of a candidate": async (check) => {
    if (!hasShared) {
      check.skip("no reference traces");
      return;
    }
    const dump = join(shared, "dumps/llama_32l_gqa_symbolic",
                      "019_pattern_matcher_eliminate_redundant_transposes.txt");
    const trace = join(shared, "traces/nsys/llama_32l_decode_graph.sqlite");
    const out = join(folder, "traced.html");
    run("graph", "candidates", dump, "--trace", trace, "--force", "--format",
        "html", "-o", out);
    const [place] = tables("candidates", dump, "--trace", trace, "--force")
      .candidate_places.filter((row) => row.candidate ===
                               "match_swiglu_pattern");
    const page = await open(out,
      { hash: "#v=fusions&o.fusions.what=match_swiglu_pattern" });
    const section = page.locator('[data-candidate="match_swiglu_pattern"]');
    await section.locator("tbody a", { hasText: "kernel" }).first().click();
    await page.waitForFunction(() =>
      document.documentElement.dataset.ready === "graph");
    const rows = await page.evaluate(() => [...document.querySelectorAll(
      '[data-k="graph.kernels"] tbody tr')].map((row) => ({
      node: row.cells[0].textContent, median: row.cells[2].textContent })));
    const nodes = place.nodes.split(" ");
    check.true("kernels of these nodes", rows.length > 0 &&
               rows.every((row) => nodes.includes(row.node)));
    const wanted = tables("kernels", trace, "--dump", dump).graph_kernels
      .filter((row) => nodes.includes(row.node));
    const list = (all) => all.map((row) => `${row.node} ${Number(row.median)}`)
      .sort();
    check.equal("kernels and times", list(rows), list(wanted.map((row) =>
      ({ node: row.node, median: row.median_us }))));
    check.true("no full colour below text", await page.evaluate(() =>
      [...document.querySelectorAll(".node .stripe")].every((stripe) =>
        Number(stripe.getAttribute("width")) <= 12 ||
        Number(stripe.getAttribute("opacity")) < 0.5)));
    await picture(page, "graph-kernels-light-1280");
  },

  "hostile names": async (check) => {
    const w = new Writer();
    // What a name of a dump may hold; the rule brings markup in its title.
    const bad = "n\"'<b>&amp;\u202e";
    w.op(bad, "aten.silu<script>.default", "x");
    w.op("mul", "aten.mul.Tensor", bad, "x");
    w.op("silu", "aten.silu.default", "mul");
    w.op("gated", "aten.mul.Tensor", "silu", "x");
    const file = join(folder, "001_export_hostile.txt");
    writeFileSync(file, w.text("</script><script>alert(1)</script>", "export",
                               "gated"));
    const out = join(folder, "hostile_census.html");
    run("graph", "census", file, "--rules", dumps().rules, "--format", "html",
        "-o", out);
    const page = await open(out, { hash: "#v=graph" });
    check.true("an element from a name", await page.evaluate(() =>
      document.querySelectorAll("img, b b, script:not([type]) ~ script b")
        .length) === 0);
    check.true("direction characters are shown", !(await page.locator("main")
      .innerText()).includes("\u202e"));
    await go(page, "#v=fusions&o.fusions.rule=silu_times", "fusions");
    check.true("the title of a rule is text", (await page.locator("main")
      .innerText()).includes("onerror"));
    check.equal("and no element", await page.locator("main img").count(), 0);
  },

  "pages at any address": async (check) => {
    const page = await open(censusPage());
    for (const hash of ["#v=graph&o.graph.file=99&o.graph.layer=nosuch",
      "#v=graph&o.graph.node=%3Cb%3E&o.graph.mark=a+b+c&o.graph.open=x+-1",
      "#v=graph&o.graph.zoom=nan&o.graph.from=gate_1",
      "#v=fusions&o.fusions.rule=nosuch&o.fusions.file=%3Cimg%3E"]) {
      await go(page, hash, /v=(\w+)/.exec(hash)[1]);
      check.true(hash, (await page.locator("main").innerText()).length > 100);
    }
  },

  "narrow and dark": async (check) => {
    for (const theme of ["light", "dark"]) {
      for (const width of [1280, 390]) {
        for (const [name, hash] of [["fusions",
          "#v=fusions&o.fusions.rule=silu_times"], ["graph", "#v=graph"]]) {
          const page = await open(censusPage(), { theme, width, hash });
          check.true(`${name} ${theme} ${width}: no sideways scroll`,
            await page.evaluate(() => document.documentElement.scrollWidth <=
                                innerWidth));
          await picture(page, `${name}-page-${theme}-${width}`);
          await page.context().close();
        }
      }
    }
  },
};
export default tests;
