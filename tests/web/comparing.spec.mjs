// SPDX-License-Identifier: Apache-2.0
//
// Pages of other commands: diff, ranks, the graph of a layer.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

import { act, click, folder, go, open, press, ready, root, run, traces }
  from "./harness.mjs";

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

// Rows of a table whose events do not add up to their times in A and B.
const wrongRows = (page, name, prefix) => page.evaluate(
  async ([table, before]) => {
    await __lamina.model.require(["device", table]);
    const t = __lamina.model.table(table);
    const wrong = [];
    for (let row = 0; row < t.rows; ++row) {
      const label = t.str(row, 0);
      if (t.find("dimension") === 0 && label === "timeline" ||
          ["(overlap)", "(idle)"].includes(label)) continue;
      for (const side of ["A", "B"]) {
        const found = __lamina.select([
          { kind: "of", values: [`${table}.${row}`], not: false },
          { kind: "trace", values: [side], not: false }]);
        const said = t.num(row, `${before}${side.toLowerCase()}_us`);
        if (found !== said) wrong.push([label, side, found, said]);
      }
    }
    return { rows: t.rows, wrong: wrong.slice(0, 5) };
  }, [name, prefix]);

const tests = {
  "many runs in one picture": async (check) => {
    // Twelve runs of a store, the last four slower.
    const store = join(folder, "runs.sqlite");
    const recorded = [];
    for (let run = 10; run < 22; ++run) {
      const file = join(folder, `r${run}.json`);
      writeFileSync(file, execFileSync("python3", [join(root,
        "samples/training.py"), String(run), run < 18 ? "1" : "1.05"]));
      recorded.push(file);
    }
    run("runs", "add", ...recorded, "--store", store, "--no-git");
    let page = await open(made("trend.html", "runs", "trend", "--store", store));
    check.equal("view", await page.evaluate(() =>
      document.documentElement.dataset.ready), "runs");
    check.equal("a point for each run", await page.locator(
      "svg.chart circle").count(), 12);
    check.equal("a line where it changed", await page.locator(
      "svg.chart a > line").count(), 1);
    const traces = await page.locator("li a[href^='file://']").evaluateAll(
      (links) => links.map((link) => decodeURI(link.getAttribute("href"))));
    check.equal("links to the traces before and after", traces,
                [recorded[7], recorded[8]].map((file) => "file://" + file));
    await picture(page, "runs-trend");
    await page.locator("svg.chart circle").nth(3).click();
    await ready(page, "tables");
    check.equal("a point leads to its row", await page.locator(
      "main tbody tr").count(), 1);
    // Each of several traces against the first one.
    page = await open(made("several.html", "diff", recorded[0], recorded[1],
                           recorded[8], recorded[9]));
    check.equal("view of several", await page.evaluate(() =>
      document.documentElement.dataset.ready), "runs");
    check.equal("a point for each trace", await page.locator(
      "svg.chart circle").count(), 4);
    check.true("with its sentence", (await page.locator("svg.chart title")
      .allTextContents()).some((text) => text.startsWith("C (") &&
                               text.includes("% more")));
    await picture(page, "runs-several");
  },
  "a trace with itself": async (check) => {
    const page = await open(made("same.html", "diff", rank(0), rank(0),
                                 "--format", "html"));
    check.equal("view", await page.evaluate(() =>
      document.documentElement.dataset.ready), "diff");
    const sums = await page.locator("[data-sum]").allTextContents();
    check.true("no difference", sums.every((s) => s.includes("rows 0 =")));
    check.equal("nothing is more", await page.locator("td .more").count(), 0);
    check.equal("nothing is less", await page.locator("td .less").count(), 0);
    // The same events twice, at the same times.
    const same = await page.evaluate(async () => {
      await __lamina.model.require(["device"]);
      const { device, lanes, traces } = __lamina.model;
      const of = [[], []];
      for (let i = 0; i < device.count; ++i) {
        const side = lanes[device.lane[i]].trace ?? 0;
        of[side].push([device.start[i], device.dur[i], device.family[i],
                       device.uid[i] - traces[side].first_uid].join());
      }
      return of.map((list) => list.sort().join(";"));
    });
    check.true("events", same[0].length > 0);
    check.true("the same events", same[0] === same[1]);
  },

  "modules of two traces": async (check) => {
    const [a, b] = ["samples/train_step.json.gz", "samples/moe.json.gz"]
      .map((file) => join(root, file));
    const page = await open(made("modules.html", "diff", a, b,
                                 "--format", "html"), { hash: "#v=modules" });
    const out = join(folder, "modules");
    run("diff", a, b, "--format", "csv", "-o", out + "/");
    const rows = readFileSync(join(out, "diff_by.csv"), "utf8").split("\n")
      .filter((line) => line.startsWith("module,"))
      .map((line) => line.split(","));
    const exact = (text) => Math.round(Number(text) * 1000);
    const paths = rows.map(([, key]) => key);
    // The time of a module with everything below it, in A and in B.
    const below = (path) => rows.filter(([, key]) => key === path ||
      path === "" || key.startsWith(path + "/")).reduce((sum, row) =>
      [sum[0] + exact(row[4]), sum[1] + exact(row[5])], [0, 0]);
    const found = await page.evaluate(() => {
      const list = [];
      const walk = (node) => {
        if (node.kind === "module") list.push([node.key, [...node.byGroup]]);
        node.children.forEach(walk);
      };
      walk(__lamina.moduleTree(false));
      return list;
    });
    check.true("modules of both", found.length > 20);
    check.equal("every path of the engine", paths.filter((path) =>
      !found.some(([key]) => key === path)), []);
    for (const [key, times] of found.slice(1))
      check.equal(`A and B of ${key}`, times, below(key));
    const box = page.locator("a[data-box]").first();
    const label = await box.locator("title").textContent();
    check.true(`a box says both: ${label}`, /: A .*, B .*/.test(label));
    const marks = await page.locator(".icicle .stripe").evaluateAll((list) =>
      list.map((mark) => mark.getAttribute("fill")));
    check.true("less and more", marks.includes("var(--less)") &&
               marks.includes("var(--more)"));
    const key = await box.getAttribute("data-box");
    await click(page, box, "modules");
    check.equal("a click filters to its events", await page.evaluate(() =>
      __lamina.selection().time), below(key)[0] + below(key)[1]);
    const bare = await open(made("bare.html", "diff", rank(0), rank(1),
                                 "--format", "html"));
    check.equal("no tab without modules",
                await bare.locator("[data-k='tab.modules']").count(), 0);
  },

  "rows of a comparison lead to their events": async (check) => {
    const page = await open(made("events.html", "diff", rank(0), rank(2),
                                 "--format", "html"));
    for (const [table, prefix] of [["diff_causes", "time_"],
        ["diff_ops", "kernel_time_"], ["diff_kernels", "kernel_time_"],
        ["diff_by", "time_"]]) {
      const { rows, wrong } = await wrongRows(page, table, prefix);
      check.true(`${table} has rows`, rows > 0);
      check.equal(table, wrong, []);
    }
    await go(page, "#v=diff&o.diff.q=mm", "diff");
    const line = page.locator("main tbody tr").first();
    const time = await line.locator("td").nth(1).locator("a").textContent();
    await line.locator("td").nth(1).locator("a").click();
    await ready(page, "timeline");
    const chips = await page.evaluate(() => __lamina.state().chips);
    check.equal("chips", chips.map((c) => c.kind), ["of", "trace"]);
    check.equal("of A", chips[1].values, ["A"]);
    const [inA, inB] = (await page.locator("#matching").textContent())
      .split("; ");
    check.true("the time of the row", inA.startsWith("A: ") &&
      inA.endsWith(time));
    check.true("A and B are not added up", inB.startsWith("B: 0 of ") &&
      inB.endsWith("device events, 0"));
    check.true("in words", (await page.locator("#chips").innerText())
      .includes("diff_causes"));
    await picture(page, "diff-timeline-light-1280");
    check.true("says how the timelines lie", (await page.locator("main")
      .innerText()).includes("lie over each other at the first device work"));
    // An event of B in the panel: its number and time in its own trace.
    const uid = await page.evaluate(() => {
      const { device, lanes, traces } = __lamina.model;
      const lane = lanes.find((l) => l.trace === 1 && l.end > l.begin);
      return { page: device.uid[lane.begin],
               own: device.uid[lane.begin] - traces[1].first_uid };
    });
    await go(page, `#v=timeline&sel=${uid.page}`, "timeline");
    check.true("number in B", (await page.locator("aside").innerText())
      .includes(`number ${uid.own} of B`));
    await go(page, "#v=timeline&trace=B", "timeline");
    const b = await page.evaluate(() => __lamina.selection().time);
    await go(page, "#v=timeline&trace=A", "timeline");
    const a = await page.evaluate(() => __lamina.selection().time);
    const { diff_totals: totals } = JSON.parse(run("diff", rank(0), rank(2),
      "--format", "json")).tables;
    check.equal("both traces whole", [a, b], totals.map((row) =>
      Math.round(row.kernel_time_us * 1000)));
  },

  "why the total differs": async (check) => {
    const page = await open(made("why.html", "diff", rank(0), rank(2),
                                 "--format", "html"));
    const causes = JSON.parse(run("diff", rank(0), rank(2), "--format",
                                  "json")).tables.diff_causes;
    const notes = JSON.parse(run("diff", rank(0), rank(2), "--format",
                                 "json")).notes;
    const whole = notes.find((note) => note.id === "diff_window").text;
    const first = page.locator("main tbody tr").first();
    const name = await first.locator("a").first().textContent();
    check.true("the first cause that is said is the first row",
               whole.includes(`. ${name} `));
    const falls = await page.locator(".fall b").allTextContents();
    const value = (text) => Number(/[\d.]+/.exec(text)[0]) *
      (text.includes("ms") ? 1000 : 1) * (text.includes("\u2212") ? -1 : 1);
    const most = Math.max(...causes.map((row) => Math.abs(row.delta_us)));
    check.true("the waterfall begins with the largest",
               Math.abs(Math.abs(value(falls[0])) / most - 1) < 0.01);
    check.true("and adds up to the difference", Math.abs(
      falls.reduce((sum, text) => sum + value(text), 0) /
      causes.reduce((sum, row) => sum + row.delta_us, 0) - 1) < 0.05);
    const all = causes.reduce((sum, row) => sum + Math.abs(row.delta_us), 0);
    const rows = page.locator("caption:text('Why ') ~ tbody > tr");
    check.equal("what explains less than 1 % is folded", await rows.count(),
      causes.filter((row) => Math.abs(row.delta_us) >= all / 100).length);
    await click(page, page.locator("[data-k='diffcauses.all']"), "diff");
    check.equal("and shown on request", await rows.count(), causes.length);
    // The first events of a row lie over each other.
    await click(page, first.locator("a").first(), "timeline");
    const pair = await page.evaluate(() => {
      const { device, lanes } = __lamina.model;
      const mask = __lamina.filterMask(__lamina.state().chips);
      const firsts = [null, null];
      for (let i = 0; i < device.count; ++i) {
        const side = lanes[device.lane[i]].trace ?? 0;
        if (mask[i] && (firsts[side] === null ||
                        device.start[i] < device.start[firsts[side]]))
          firsts[side] = i;
      }
      return firsts.map((i) => ({ start: device.start[i],
                                  x: __lamina.trackLeft(device.uid[i]) }));
    });
    check.true("they begin at different times", pair[0].start !== pair[1].start);
    check.true(`at one place: ${pair.map((p) => p.x)}`,
               Math.abs(pair[0].x - pair[1].x) < 0.01);
    check.true("and are in the window", pair[0].x > 0 && pair[0].x < 1280);
    await click(page, page.locator("[data-pair=aligned] a"), "timeline");
    check.equal("as usual again",
                await page.locator("[data-pair=aligned]").count(), 0);
  },

  "rows that one side alone has": async (check) => {
    const page = await open(made("only.html", "diff", traces.train, traces.moe,
                                 "--format", "html"));
    const marks = async () => new Set(await page.locator("td .mark")
      .allTextContents());
    const seen = await marks();
    check.true("badges", seen.has("only in A") && seen.has("only in B"));
    const tables = await page.locator("main caption").allTextContents();
    check.equal("one list for both", tables.filter((title) =>
      /^Only in/.test(title)), []);
  },

  "who waits for whom": async (check) => {
    const { tables } = JSON.parse(run("ranks", ranks, "--format", "json"));
    const page = await open(made("waits.html", "ranks", ranks, "--format",
                                 "html"), { width: 1440 });
    const ns = (us) => Math.round(us * 1000);
    const late = new Map(tables.collectives.map((row) => [row.id, row.late_rank]));
    const waits = new Map();
    for (const row of tables.collective_waits) {
      const rank = late.get(row.id);
      if (rank === null || rank === row.rank || !(row.wait_us > 0)) continue;
      waits.set(rank, (waits.get(rank) ?? 0) + ns(row.wait_us));
    }
    const [worst, most] = [...waits].sort((a, b) => b[1] - a[1])[0];
    const first = page.locator("[data-late]").first();
    check.equal("the rank that most wait for", await first.getAttribute(
      "data-late"), String(worst));
    const words = await first.innerText();
    const others = tables.ranks.map((row) => row.rank).filter((r) => r !== worst);
    check.true(`in words: ${words}`, words.includes(
      `${others.join(", ")} wait for ${worst}`));
    check.true("how long", words.includes((most / 1e6).toFixed(3) + " ms"));
    // Bars add up to the time of the rank on its device.
    const bars = await page.locator("[data-rank]").evaluateAll((list) =>
      list.map((bar) => [...bar.querySelectorAll("i")].reduce((sum, part) =>
        sum + parseFloat(part.style.width), 0)));
    const times = tables.ranks.map(({ rank }) => tables.rank_steps
      .filter((row) => row.rank === rank)
      .reduce((sum, row) => sum + ns(row.busy_us) + ns(row.idle_us), 0));
    const top = Math.max(...times);
    check.true("bars of all ranks", bars.length === times.length &&
      bars.every((width, i) => Math.abs(width - 100 * times[i] / top) < 0.1));
    for (const title of ["Who is behind the waits", "Collectives"]) {
      const heads = await page.locator(`h2:text-is('${title}') + section th`)
        .allInnerTexts();
      check.equal(`each head of ${title} once`, new Set(heads).size,
                  heads.length);
    }
  },

  "five slower kernels lead the list": async (check) => {
    const before = join(root, "samples/train_step.json.gz");
    const trace = JSON.parse(gunzipSync(readFileSync(before)));
    const slower = new Map();
    for (const event of trace.traceEvents) {
      if (event.cat !== "kernel" || slower.size >= 5 || slower.has(event.name))
        continue;
      const added = 100 * (slower.size + 1);
      slower.set(event.name, added);
      // What follows begins later: a stream runs one kernel at a time.
      const end = event.ts + event.dur;
      event.dur = Math.round((event.dur + added) * 1000) / 1000;
      for (const other of trace.traceEvents) {
        if (other.args?.stream !== undefined && other.ts >= end)
          other.ts = Math.round((other.ts + added) * 1000) / 1000;
      }
    }
    const after = join(folder, "slower.json");
    writeFileSync(after, JSON.stringify(trace));
    const page = await open(made("slower.html", "diff", before, after,
                                 "--format", "html"));
    const found = await page.evaluate(() => {
      const t = __lamina.model.table("diff_kernels");
      return Array.from({ length: t.rows }, (_, row) =>
        [t.str(row, "kernel_a"), t.num(row, "delta_us") / 1000]);
    });
    check.equal("these and by how much, the largest first", found,
                [...slower].reverse());
    const sums = await page.locator("[data-sum=diff_kernels]").textContent();
    check.equal("shown and the rest", sums, "Difference of all rows " +
      "\u25b2 +1.500 ms = shown \u25b2 +1.500 ms + rest 0.");
    for (const table of ["diff_kernels", "diff_ops"]) {
      const { wrong } = await wrongRows(page, table, "kernel_time_");
      check.equal(`events of ${table}`, wrong, []);
    }
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

  // A cell without a wait is a line where the rank is no member of the group,
  // and hatched where its record was lost.
  "cells of a heat map without a wait": async (check) => {
    const job = join(folder, "lossy");
    execFileSync("python3", [join(root, "tools/generator/job.py"), "-o", job,
      "--tp", "2", "--pp", "1", "--dp", "2", "--steps", "2", "--lose", "5"]);
    const page = await open(made("lossy.html", "ranks", job, "--format",
                                 "html"), { hash: "#v=ranks" });
    const { tables } = JSON.parse(run("ranks", job, "--format", "json"));
    const waits = new Map(tables.collective_waits.map((row) =>
      [`${row.id} ${row.rank}`, row.wait_us]));
    const expected = tables.collectives.slice(0, 80).map((call) =>
      tables.ranks.map(({ rank }) =>
        !call.group_ranks.match(/\d+/g).includes(String(rank))
          ? "this rank takes no part"
          : typeof waits.get(`${call.id} ${rank}`) === "number" ? "waits"
            : "the record of this rank is missing"));
    const found = await page.evaluate(([calls, columns, ranks]) => {
      const canvas = document.querySelector("canvas.heat");
      const box = canvas.getBoundingClientRect();
      const [wide, tall] = [(box.width - 80) / columns, 20];
      return Array.from({ length: calls }, (_, c) =>
        Array.from({ length: ranks }, (_row, r) => {
          canvas.dispatchEvent(new PointerEvent("pointermove", {
            clientX: box.left + 78 + (c + 0.5) * wide,
            clientY: box.top + 18 + (r + 0.5) * tall }));
          return document.querySelector(".tip:not([hidden])").textContent
            .replace(/^[^:]*: /, "").replace(/^waits .*/, "waits");
        }));
    }, [expected.length, tables.collectives.length, tables.ranks.length]);
    check.equal("what a cell says", found, expected);
    check.equal("all three occur", new Set(expected.flat()).size, 3);
    await go(page, "#v=timeline", "timeline");
    const streams = await page.locator("main table").first()
      .locator("tbody tr:not(.room) td:last-child").allInnerTexts();
    check.true("tracks name rank and stream", streams.length > 0 &&
      streams.every((name) => /^rank \d+: stream \d+$/.test(name)));
  },

  "ranks": async (check) => {
    const page = await open(made("ranks.html", "ranks", ranks, "--format",
                                 "html"));
    await picture(page, "ranks-light-1280");
    const json = JSON.parse(run("ranks", ranks, "--format", "json"));
    // Times stand there with the digits and the sign of the tables.
    const plain = (text) => text.replace(/[-+\u2212]?[\d.]+ (ns|us|\u00b5s|ms|s)\b/g,
                                         "T");
    check.true("says who", plain(await page.locator("main").innerText())
      .includes(plain(json.notes.find((n) => n.id === "straggler").text.slice(1))));
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
        Math.round(78 + 4.5 * wide), 0, 1, 76);
      const at = (y) => data[4 * y] + data[4 * y + 1] + data[4 * y + 2];
      return { long: at(28), none: at(68) };
    });
    check.true("dark is long", cells.long < cells.none);
    await act(page, "ranks", () => canvas.click({ position:
      { x: 78 + (box.width - 80) * 4.5 / 8, y: 20 } }));
    const id = await page.evaluate(() =>
      __lamina.state().options["ranks.col"]);
    check.equal("click chooses a collective", id, "4");
    const call = json.tables.collectives.find((row) => String(row.id) === id);
    check.true("names the late rank", (await page.locator("main").innerText())
      .includes(`Rank ${call.late_rank} comes last`));
    // Its events on all ranks, with what held the last one up.
    const cause = page.locator("p[data-cause]");
    check.equal("the cause of the table", await cause
      .getAttribute("data-cause"), call.cause);
    check.true("in words", (await cause.innerText()).includes(
      "A longer kernel held rank 2 up: the work of aten::mm took"));
    const table = page.locator("main table").first();
    check.equal("a row for each rank", await table.locator("tbody tr").count(),
                json.tables.collective_waits.filter((row) =>
                  row.id === call.id).length);
    check.true("clock of each rank", /reference clock[^]*moved by \+/.test(
      await table.innerText()));
    const wrong = await page.evaluate(() => {
      const calls = __lamina.model.table("collectives");
      const waits = __lamina.model.table("collective_waits");
      const out = [];
      for (let row = 0; row < calls.rows; ++row) {
        const found = __lamina.select([{ kind: "of", not: false,
          values: [`collectives.${row}`] }]);
        let said = 0;
        for (let w = 0; w < waits.rows; ++w)
          if (waits.num(w, "id") === calls.num(row, "id"))
            said += waits.num(w, "dur_us");
        if (found !== said) out.push([row, found, said]);
      }
      return out;
    });
    check.equal("events of each collective add up", wrong, []);
    await click(page, table.locator("tbody a").first(), "ranks");
    const panel = await page.locator("aside").innerText();
    check.true("the panel knows the collective", panel.includes(
      `rank ${call.late_rank} last`) && panel.includes("held rank 2 up"));
    await picture(page, "ranks-events-light-1280");
    await go(page, "#v=ranks&o.ranks.col=4", "ranks");
    await canvas.focus();
    await press(page, "ArrowRight", "ranks");
    check.equal("arrows walk", await page.evaluate(() =>
      __lamina.state().options["ranks.col"]), "5");
    await go(page, "#v=ranks&o.ranks.by=steps", "ranks");
    await act(page, "ranks", () => canvas.click({ position:
      { x: 84, y: 20 } }));
    const step = page.locator("section", { hasText: /^Step \d+ on all ranks/ });
    check.equal("a row for each rank of the step",
                await step.locator("tbody tr").count(), 4);
    check.equal("events of each step of a rank are busy as the table says",
      await page.evaluate(() => {
        const steps = __lamina.model.table("rank_steps");
        const { device, lanes, traces } = __lamina.model;
        const out = [];
        for (let row = 0; row < steps.rows; ++row) {
          const own = Array.from({ length: device.count }, (_, i) => i)
            .filter((i) => device.rankstep[i] === row + 1)
            .sort((a, b) => device.start[a] - device.start[b]);
          let busy = 0;
          let end = -Infinity;
          for (const i of own) {
            const stop = device.start[i] + device.dur[i];
            busy += Math.max(0, stop - Math.max(end, device.start[i]));
            end = Math.max(end, stop);
          }
          const ranks = new Set(own.map((i) =>
            traces[lanes[device.lane[i]].trace ?? 0].name));
          // Starts are on aligned clocks, which run a little faster or slower.
          const said = steps.num(row, "busy_us");
          if (Math.abs(busy - said) > said / 1e5 || ranks.size !== 1 ||
              !ranks.has("rank " + steps.str(row, "rank")))
            out.push([row, busy, said, [...ranks]]);
        }
        return out;
      }), []);
    await click(page, step.locator("tbody a").nth(1), "timeline");
    check.true("the filter names the step", /rank_steps \d+: rank 0 step \d+/
      .test(await page.locator("#chips").innerText()));
    await go(page, "#v=ranks&o.ranks.by=steps", "ranks");
    await picture(page, "ranks-steps-light-1280");
  },

  // One scene is behind both: what stands in boxes and frames, and colours.
  "above 80 boxes attention and FFN stand beside each other": async (check) => {
    for (const [chain, columns] of [[30, false], [45, true]]) {
      const parts = [["attn", "self_attn_q_proj"], ["ffn", "mlp_up_proj"]];
      const lines = [], weights = [];
      let last = "x";
      for (const layer of [0, 1]) {
        for (const [part, weight] of parts) {
          const path = `p_layers_${layer}_${weight}_weight`;
          weights.push(`${path}: "f32[8, 8]"`);
          for (let k = 0; k < chain; ++k) {
            const name = `${part}_${layer}_${k}`;
            lines.push(`            ${name}: "f32[8, 8]" = torch.ops.aten.` +
                       `linear.default(${last}, ${path})`);
            last = name;
          }
        }
      }
      const dump = join(folder, `chain${chain}.py`);
      writeFileSync(dump, "ExportedProgram:\n    class GraphModule(torch.nn." +
        `Module):\n        def forward(self, ${weights.join(", ")}, x: ` +
        `"f32[8, 8]"):\n${lines.join("\n")}\n            return (${last},)\n`);
      const out = join(folder, `chain${chain}.json`);
      run("graph", "layer", dump, "-n", "1", "--render", "html", "-o", out);
      const page = await open(out.replace(".json", ".html"));
      await picture(page, `graph-columns-${chain}`);
      const extent = (part) => page.evaluate((begin) => {
        const rects = [...document.querySelectorAll("[data-node]")]
          .filter((box) => box.dataset.node.startsWith(begin))
          .map((box) => box.querySelector(".box").getBBox());
        return { count: rects.length,
          left: Math.min(...rects.map((r) => r.x)),
          right: Math.max(...rects.map((r) => r.x + r.width)),
          top: Math.min(...rects.map((r) => r.y)),
          bottom: Math.max(...rects.map((r) => r.y + r.height)) };
      }, part + "_1");
      const [attn, ffn] = [await extent("attn"), await extent("ffn")];
      check.equal(`${chain}: boxes`, [attn.count, ffn.count], [chain, chain]);
      check.equal(`${chain}: beside`, attn.right < ffn.left &&
        Math.abs(attn.top - ffn.top) < 100, columns);
      check.equal(`${chain}: below`, attn.bottom < ffn.top, !columns);
      // The line between the columns begins and ends at its boxes.
      const line = await page.evaluate(([from, to]) => {
        const edge = [...document.querySelectorAll("polyline.edge")].find(
          (e) => e.dataset.from === from && e.dataset.to === to);
        return edge.getAttribute("points").split(" ").map((point) =>
          point.split(",").map(Number));
      }, [`attn_1_${chain - 1}`, "ffn_1_0"]);
      check.true(`${chain}: line`, Math.abs(line[0][1] - attn.bottom) < 30 &&
        line.at(-1)[1] > ffn.top - 30 && line.at(-1)[1] < ffn.top + 60);
    }
  },
  "a layer as a page is that of the picture": async (check) => {
    if (spawnSync("dot", ["-V"]).status !== 0) {
      check.skip("no Graphviz");
      return;
    }
    const shared = process.env.LAMINA_SHARED ?? join(root, "..", "shared");
    const samples = join(root, "samples/dumps");
    const llama = join(shared, "dumps/llama_32l_gqa_symbolic");
    execFileSync("python3", [join(root, "tests/checks/mla_moe_model.py"),
                             folder]);
    const cases = [
      ["experts", join(folder, "086_compile_compile_model.txt"), "4",
       ["--trace", join(folder, "trace.json")]],
      ["plain", join(samples, "064_post_load_fusion_fuse_add_rms_norm.txt"),
       "2", []],
      ["traced", join(llama, "086_compile_compile_model.txt"), "5",
       ["--trace", join(shared, "traces/nsys/llama_32l_decode_graph.sqlite")]],
      ["misfit", join(samples, "064_post_load_fusion_fuse_add_rms_norm.txt"),
       "2", ["--trace", join(shared,
                             "traces/nsys/llama_32l_decode_graph.sqlite")]],
    ];
    for (const [name, dump, layer, more] of cases) {
      if (!existsSync(dump) || more.some((word) => word.startsWith("/") &&
                                                   !existsSync(word))) {
        console.log(`left out: ${name}, no reference traces`);
        continue;
      }
      const out = join(folder, `scene_${name}.json`);
      run("graph", "layer", dump, "-n", layer, ...more, "--render",
          "html,svg", "-o", out);
      const page = await open(out.replace(".json", ".html"));
      await picture(page, `graph-scene-${name}-light-1280`);
      const image = readFileSync(out.replace(".json", ".svg"), "utf8");
      const ids = JSON.parse(readFileSync(out, "utf8")).nodes.map((n) => n.id);
      const [drawn, wanted] = await page.evaluate(([text, nodes]) => {
        const known = new Set(nodes);
        const plain = (list) => [...list].map((e) => e.textContent
          .replace(/\s+/g, " ").trim()).sort();
        const here = {};
        for (const box of document.querySelectorAll("[data-node]")) {
          if (!known.has(box.dataset.node)) continue;
          here[box.dataset.node] = { texts: plain(box.querySelectorAll("text")),
            fill: box.querySelector(".box").getAttribute("fill") };
        }
        const svg = new DOMParser().parseFromString(text, "image/svg+xml");
        const there = {};
        for (const box of svg.querySelectorAll("g.node")) {
          const id = box.querySelector("title").textContent;
          if (!known.has(id)) continue;
          there[id] = { texts: plain(box.querySelectorAll("text")),
            fill: box.querySelector("polygon, path, ellipse")
              .getAttribute("fill") };
        }
        const frames = (list) => plain(list).filter((t) => t !== "");
        // What each edge between nodes goes over.
        const between = (from, to, over) => known.has(from) && known.has(to)
          ? [`${from} -> ${to}: ${over}`] : [];
        const overHere = [...document.querySelectorAll("polyline.edge")]
          .flatMap((e) => between(e.dataset.from, e.dataset.to,
                                  e.querySelector("title")?.textContent ?? ""));
        const overThere = [...svg.querySelectorAll("g.edge")].flatMap((e) => {
          const [from, to] = e.querySelector("title").textContent.split("->");
          const link = e.querySelector("a");
          return between(from, to, link?.getAttributeNS(
            "http://www.w3.org/1999/xlink", "title") ?? "");
        });
        return [{ boxes: here, frames: frames(document.querySelectorAll(
                    ".clustername")),
                  over: overHere.sort(),
                  off: plain(document.querySelectorAll(
                    '[data-k="graph.offnodes"] li')),
                  edges: plain(document.querySelectorAll(".edgename")),
                  title: document.querySelector("main h2").textContent },
                { boxes: there, frames: frames(svg.querySelectorAll(
                    "g.cluster > text")),
                  over: overThere.sort(),
                  off: plain([...svg.querySelectorAll("g.node")]
                    .find((box) => box.querySelector("title").textContent ===
                          "(not on any node)")?.querySelectorAll("text") ?? []),
                  edges: plain(svg.querySelectorAll("g.edge > text, g.edge " +
                    "a > text")),
                  title: [...svg.querySelectorAll("g.graph > text")]
                    .map((e) => e.textContent).join(" ") }];
      }, [image, ids]);
      const sorted = (boxes) => Object.entries(boxes).sort();
      check.true(`${name}: boxes`, Object.keys(wanted.boxes).length >= 10);
      check.equal(`${name}: texts and colours`, sorted(drawn.boxes),
                  sorted(wanted.boxes));
      check.equal(`${name}: frames`, drawn.frames, wanted.frames);
      const title = await page.locator('[data-k="graph.title"]')
        .allInnerTexts();
      const layers = drawn.title.match(/^Layer \d+ of (\d+), kind [A-Z]/);
      check.true(`${name}: titled`, layers && Number(layers[1]) > 1);
      check.true(`${name}: title`, wanted.title.startsWith(
        [drawn.title, ...title].join(" ")));
      check.equal(`${name}: edges`, drawn.edges, wanted.edges);
      check.true(`${name}: residual`, drawn.edges.includes("residual"));
      check.equal(`${name}: edges and what they go over`, drawn.over,
                  wanted.over);
      check.equal(`${name}: kernels on no node`, drawn.off, wanted.off);
      if (more.length === 0) continue;
      check.true(`${name}: over views`, drawn.over.some((edge) =>
        /: \S/.test(edge)));
      check.true(`${name}: times`,
        / \| wall .* us, busy .* \| median of \d+ replays$/.test(title[0]));
      check.equal(`${name}: warned`, title.length, name === "misfit" ? 2 : 1);
      const legend = name === "misfit" ? 0 : 1;
      check.equal(`${name}: legend`, await page.locator(
        '[data-k="graph.legend"]').count(), legend);
      await go(page, "#v=graph&o.graph.views=1", "graph");
      check.true(`${name}: views can be shown`, await page.locator(
        "[data-node]").count() >= Object.keys(drawn.boxes).length);
    }
  },

  "graph of a layer": async (check) => {
    const dump = join(process.env.LAMINA_SHARED ?? join(root, "..", "shared"),
                      "dumps/mixtral_4l_moe_symbolic");
    if (!existsSync(dump)) {
      check.skip("no dumps");
      return;
    }
    const out = join(folder, "layer.json");
    run("graph", "layer", dump, "-n", "1", "--render", "html", "-o", out);
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
