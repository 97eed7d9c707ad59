// SPDX-License-Identifier: Apache-2.0
//
// "Copy as command": what the button copies is run by bash, and gives the rows
// of the view to the nanosecond, or the page says what it leaves out.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from
  "node:fs";
import { join } from "node:path";

import { copied, folder, go, lamina, ns, open, pageOf, parseCsv, root, run,
         traces } from "./harness.mjs";

const bin = join(folder, "bin");
mkdirSync(bin);
symlinkSync(lamina, join(bin, "lamina"));
// Hundreds of commands ask one trace: it is parsed once.
const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`,
              LAMINA_CACHE: "always", LAMINA_CACHE_DIR: join(folder, "cache") };

function bash(command, cwd) {
  return execFileSync("bash", ["-c", command],
    { cwd, env, encoding: "utf8", maxBuffer: 1 << 30,
      stdio: ["ignore", "pipe", "pipe"] });
}

// {name: rows} of what --format csv prints; one table has no name in front.
function tablesIn(text, command) {
  const only = / --only (\S+)/.exec(command)?.[1]?.split(",") ?? [];
  if (only.length === 1) return { [only[0]]: parseCsv(text) };
  return Object.fromEntries(text.split(/^# (?=[a-z_]+$)/m).slice(1)
    .map((part) => [part.slice(0, part.indexOf("\n")),
                    parseCsv(part.slice(part.indexOf("\n") + 1).trimEnd() +
                             "\n")]));
}

const foot = (page) => page.locator("footer").textContent();
const copy = (page) => copied(page, () =>
  page.locator("[data-k=command]").click());

// What a page says instead of a command.
async function refused(page) {
  await page.evaluate(() => { document.querySelector("footer").textContent =
    ""; });
  await page.locator("[data-k=command]").click();
  await page.waitForFunction(() =>
    document.querySelector("footer").textContent !== "");
  return foot(page);
}

// Time and number of the events of the filter by what names a row.
const pageSums = (page, column, keys, table) => page.evaluate(
  async ([c, names, name]) => {
    await __lamina.model.require([name]);
    const t = __lamina.model.table(name);
    const { time, count } = __lamina.sums(c, t.rows + 1);
    const sums = {};
    for (let row = 0; row < t.rows; ++row) {
      if (count[row + 1] === 0) continue;
      const key = names.map((n) => t.str(row, n)).join(" | ");
      const [ns, events] = sums[key] ?? [0, 0];
      sums[key] = [ns + time[row + 1], events + count[row + 1]];
    }
    return sums;
  }, [column, keys, table]);

function sumsOf(rows, keys, time, events) {
  const sums = {};
  for (const row of rows) {
    if (ns(row[time]) === 0) continue;
    const key = keys.map((k) => row[k]).join(" | ");
    const [old, many] = sums[key] ?? [0, 0];
    sums[key] = [old + ns(row[time]), many + (events ? Number(row[events]) : 0)];
  }
  return sums;
}
const sorted = (sums) => Object.entries(sums).sort(([a], [b]) =>
  a < b ? -1 : a > b ? 1 : 0);
const withoutCounts = (sums) => sorted(sums).map(([key, [time]]) => [key, time])
  .filter(([, time]) => time > 0);

const kKernel = ["kernel", "op", "family", "device", "stream"];
const kOp = ["op", "input_dims", "input_types"];

// Names in CSV files that a spreadsheet would run carry an apostrophe.
const unsafe = (rows) => rows.map((row) => Object.fromEntries(
  Object.entries(row).map(([k, v]) => [k, /^'[=+\-@\t\r]/.test(v)
    ? v.slice(1) : v])));

// The rows that a filter leaves in the views that follow it.
async function sameRows(check, page, cwd, what, hash, views) {
  for (const view of views) {
    await go(page, `#v=${view}&${hash}`, view);
    const { count, time } = await page.evaluate(() => __lamina.selection());
    if (count === 0) {
      check.true(`${what}, ${view}: no rows`,
                 (await refused(page)).startsWith("Nothing passes"));
      continue;
    }
    const command = await copy(page);
    check.equal(`${what}, ${view}: leaves nothing out`, await foot(page),
                "Command copied.");
    const out = bash(command, cwd);
    if (view === "timeline") {
      const rows = parseCsv(run("report", join(cwd, "lamina-part.json.gz"),
                                "--only", "kernels", "--format", "csv"));
      check.equal(`${what}, timeline`,
        [rows.reduce((n, row) => n + Number(row.count), 0),
         rows.reduce((n, row) => n + ns(row.kernel_time_us), 0)],
        [count, time]);
      continue;
    }
    const rows = unsafe(parseCsv(out));
    if (view === "kernels") {
      check.equal(`${what}, kernels`,
        sorted(sumsOf(rows, kKernel, "kernel_time_us", "count")),
        sorted(await pageSums(page, "kernel", kKernel, "kernels")));
    } else if (view === "modules") {
      check.equal(`${what}, modules`,
        withoutCounts(sumsOf(rows.filter((row) => row.class !== ""),
                             ["module"], "self_kernel_time_us")),
        withoutCounts(await pageSums(page, "module", ["module"], "modules"))
          .filter(([key]) => key !== "(outside)"));
    } else {
      check.equal(`${what}, ${view}`,
        withoutCounts(sumsOf(rows, kOp, "kernel_time_us")),
        withoutCounts(await pageSums(page, "op", kOp, "op_efficiency")));
    }
  }
}

// Addresses of filters of every kind, from what is in the trace.
const states = (page) => page.evaluate(async () => {
  const { model } = __lamina;
  await model.require(["device", "kernels", "op_efficiency", "modules",
                       "layers", "passes", "steps"]);
  const { device } = model;
  const enc = encodeURIComponent;
  const of = (table, column, row) => enc(model.table(table).str(row, column));
  const list = [];
  const kernels = model.table("kernels");
  const group = (row) => model.families.find((f) => f.name ===
    kernels.str(row, "family")).group;
  list.push("fam=" + group(0), `fam=${group(0)},${group(kernels.rows - 1)}`,
    "cat=" + of("kernels", "family", 0), "name=" + of("kernels", "kernel", 0),
    "not.name=" + of("kernels", "kernel", 0), "row=none",
    `not.fam=${group(0)}&not.name=` + of("kernels", "kernel",
                                         kernels.rows - 1));
  for (let row = 0; row < kernels.rows; ++row) {
    if (kernels.str(row, "op") === "") continue;
    list.push("op=" + of("kernels", "op", row),
              `not.op=${of("kernels", "op", row)}&fam=${group(row)}`);
    break;
  }
  if (model.table("op_efficiency").rows > 1) {
    list.push(`row=${of("op_efficiency", "first_uid", 0)},` +
              of("op_efficiency", "first_uid", 1),
              "not.row=" + of("op_efficiency", "first_uid", 0));
  }
  const inner = model.table("modules").rows;
  if (inner > 2) {
    list.push("mod=" + of("modules", "module", 2),
              "not.mod=" + of("modules", "module", 2));
  }
  if (model.table("layers").rows > 1) {
    list.push(`layer=${of("layers", "first_uid", 0)},` +
      of("layers", "first_uid", 1), "not.layer=" +
      of("layers", "first_uid", 0));
  }
  if (model.table("passes").rows > 0)
    list.push("pass=" + of("passes", "pass", 0),
              "stage=" + of("passes", "stage", 0));
  if (model.table("steps").rows > 0)
    list.push("step=" + of("steps", "name", 0));
  const { device: gpu, stream } = model.lanes[0];
  list.push(`lane=${gpu}/${stream}`);
  // A slice holds whole events, the page counts what lies inside of a range:
  // they are the same where no event crosses an edge.
  const byStart = [...Array(device.count).keys()].sort((a, b) =>
    device.start[a] - device.start[b]);
  const at = (part) => {
    let t = Math.round(device.first + (device.last - device.first) * part);
    for (const i of byStart) {
      if (device.start[i] >= t) break;
      t = Math.max(t, device.start[i] + device.dur[i]);
    }
    return t;
  };
  list.push(`t=${at(0.2)}..${at(0.6)}`, `t=${at(0)}..${at(0.1)},` +
    `${at(0.9)}..${at(1)}`, `not.t=${at(0.3)}..${at(0.5)}`,
    `t=-5..${at(0.5)}&fam=${group(0)}`);
  const middle = [...device.dur].sort((a, b) => a - b)[device.count >> 1];
  list.push(`dur=>${middle}`, `dur=<${middle}`,
            `not.dur=>${middle},<${Math.round(middle / 2)}`);
  list.push("uid=" + [0, 1, device.count >> 1, device.count - 1]
    .map((row) => device.uid[row]).join(","));
  const word = kernels.str(0, "kernel").replace(/^void /, "")
    .match(/[a-z]{3,}/i)?.[0] ?? "kernel";
  list.push(`q=${word.toUpperCase()}`, `not.q=${word}`);
  return list;
});

// Every table of the command, as the page has it.
async function sameTables(check, page, what, cwd) {
  const command = await copy(page);
  const tables = tablesIn(bash(command, cwd), command);
  check.true(`${what}: tables of ${command}`, Object.keys(tables).length > 0);
  for (const [name, rows] of Object.entries(tables)) {
    const found = await page.evaluate(async (table) => {
      await __lamina.model.require([table]);
      const t = __lamina.model.table(table);
      return { rows: t.rows, times: Object.fromEntries(t.info.columns
        .filter((c) => c.type === "time").map((c) => [c.name, t.sum(c.name)])) };
    }, name);
    check.equal(`${what}: ${name}`, found, { rows: rows.length,
      times: Object.fromEntries(Object.keys(found.times).map((column) =>
        [column, rows.reduce((sum, row) => sum +
          (row[column] === "" ? 0 : ns(row[column])), 0)])) });
  }
}

const temp = () => mkdtempSync(join(folder, "command"));
const tests = {};

for (const name of ["train", "serve", "owlv2"].filter((n) => traces[n])) {
  tests[`${name}: filters`] = async (check) => {
    const page = await open(pageOf(traces[name]), { hash: "#v=kernels" });
    const cwd = temp();
    const has = await page.evaluate(() => __lamina.model.hasTable("modules"));
    const list = await states(page);
    check.true(`states: ${list.length}`, list.length >= 18);
    for (const [i, hash] of list.entries()) {
      // Every state in one view, and the views in turn.
      const views = ["kernels", "ops", ...has ? ["modules"] : [], "timeline",
                     "roofline"];
      await sameRows(check, page, cwd, hash, hash,
        name !== "train" ? [views[i % views.length]]
          : [...new Set(["kernels", views[i % views.length]])]);
    }
  };
}

Object.assign(tests, {
  "every view": async (check) => {
    const cwd = temp();
    const html = join(cwd, "own.html");
    run("report", traces.train, "--device", "a100", "--short-kernel-us", "20",
        "--format", "html", "-o", html);
    const page = await open(html);
    const views = await page.evaluate(() => [...document.querySelectorAll(
      "nav a")].map((a) => new URL(a.href).hash.match(/v=([a-z]+)/)[1]));
    for (const view of views) {
      await go(page, "#v=" + view, view);
      if (view === "timeline") continue;
      await sameTables(check, page, view, cwd);
    }
    await go(page, "#v=tables&o.tables.name=short_kernels", "tables");
    await sameTables(check, page, "short_kernels", cwd);
    check.true("options", /--device a100 .*--short-kernel-us 20/
      .test(await copy(page)));
    // Windows of the timeline, and its selected event.
    await go(page, "#v=timeline", "timeline");
    const [from, to, uid] = await page.evaluate(() => {
      const { first, last, uid } = __lamina.model.device;
      return [Math.round(first + (last - first) * 0.3),
              Math.round(first + (last - first) * 0.7), uid[3]];
    });
    const time = await page.evaluate(([a, b]) => {
      const { start, dur, count } = __lamina.model.device;
      let all = 0;
      for (let i = 0; i < count; ++i)
        if (start[i] < b && start[i] + dur[i] > a) all += dur[i];
      return all;
    }, [from, to]);
    await go(page, `#v=timeline&z=${from}..${to}`, "timeline");
    bash(await copy(page), cwd);
    const part = parseCsv(run("report", join(cwd, "lamina-part.json.gz"),
                              "--only", "kernels", "--format", "csv"));
    check.equal("window: whole events", part.reduce((n, row) =>
      n + ns(row.kernel_time_us), 0), time);
    // Inside of an event: the command says that it counts more.
    const [a, b] = await page.evaluate(() => {
      const { start, dur } = __lamina.model.device;
      const row = dur.indexOf(Math.max(...dur));
      return [start[row] + Math.floor(dur[row] / 4),
              start[row] + Math.ceil(dur[row] / 2)];
    });
    await go(page, `#v=kernels&t=${a}..${b}`, "kernels");
    await copy(page);
    check.true("events at the edges are named", (await foot(page))
      .includes("Events that cross the edge of the range count whole there."));
    await go(page, `#v=timeline&sel=${uid}`, "timeline");
    check.true("event", bash(await copy(page), cwd).includes("self"));
    check.equal("nothing in the way of the files", readdirSync(cwd).sort(),
                ["lamina-part.json.gz", "own.html"]);
  },

  "what a command leaves out": async (check) => {
    const cwd = temp();
    const page = await open(pageOf(traces.train));
    const said = async (hash, view) => {
      await go(page, `#v=${view}&${hash}`, view);
      await copy(page);
      return foot(page);
    };
    check.equal("regular expression", await said("q=/gemm|flash/", "kernels"),
      "Command copied. It leaves out the filter by text.");
    check.equal("two filters of a kind",
      await said("fam=gemm&fam=gemm,norm", "kernels"),
      "Command copied. It leaves out the filter by family.");
    check.equal("sums by op", await said("o.ops.by=op", "ops"),
      "Command copied. It leaves out the sums by op.");
    check.equal("typed names", await said("o.ops.q=mm&fam=gemm", "ops"),
      "Command copied. It leaves out the names typed above the table.");
    check.equal("pass of layers", await said("o.layers.pass=1", "layers"),
      "Command copied. It leaves out the choice of a pass.");
    await go(page, "#v=kernels&name=nothing", "kernels");
    check.true("nothing passes",
               (await refused(page)).startsWith("Nothing passes"));

    // A trace that lamina slice does not cut.
    const jax = join(cwd, "jax.html");
    run("report", join(root, "samples/jax.xplane.pb"), "--format", "html", "-o",
        jax);
    const other = await open(jax);
    await go(other, "#v=kernels&not.fam=memory", "kernels");
    await copy(other);
    check.equal("another format", await foot(other), "Command copied. It " +
      "leaves out the filter by not family.");
    await go(other, "#v=timeline", "timeline");
    check.equal("its timeline", await refused(other),
      "lamina slice cannot cut what this page was made from.");

    // A pipe cannot be read again.
    const piped = join(cwd, "piped.html");
    bash(`cat ${traces.train} | lamina report - --format html -o ${piped}`, cwd);
    const pipe = await open(piped);
    check.true("a pipe", (await refused(pipe)).includes("from a pipe"));
  },

  "pages of other commands": async (check) => {
    const cwd = temp();
    const ranks = join(root, "samples/ranks");
    const rank = (n) => join(ranks, `rank${n}.json.gz`);
    const dumps = join(root, "samples/dumps");
    for (const [name, ...args] of [
      ["diff", "diff", rank(0), rank(2)],
      ["ranks", "ranks", ranks, "--raw-clocks"],
      ["census", "graph", "census", dumps],
      ["pipeline", "graph", "pipeline", dumps],
    ]) {
      const html = join(cwd, name + ".html");
      run(...args, "--format", "html", "-o", html);
      const page = await open(html);
      const views = await page.evaluate(() => [...document.querySelectorAll(
        "nav a")].map((a) => new URL(a.href).hash.match(/v=([a-z]+)/)[1]));
      for (const view of views.filter((v) => v !== "timeline")) {
        await go(page, "#v=" + view, view);
        await sameTables(check, page, `${name}, ${view}`, cwd);
      }
    }
  },

  "hostile names": async (check) => {
    const cwd = temp();
    const names = ["it's", "\"two\" words", "$(touch pwned)", "`touch pwned`",
      "a\nb; touch pwned", "\u001b[2J\u0007 bell", "\\back\\slash'", "!history!",
      "\u202eevil\u2069", "-rf", "--help", "a,b=c,d", "[x, y]", "*?~{a,b}", "é\u00a0ß \u{1f600}",
      "percent %s %n", "tab\tend",
      "x\u000177", "a|b&c>d<e", "#comment"];
    const lost = ["nul\u0000byte", "\ud800 lone"];
    const events = [];
    for (const [i, name] of [...names, ...lost].entries()) {
      const at = i * 100;
      events.push({ ph: "X", cat: "cpu_op", name, pid: 1, tid: 1, ts: at,
                    dur: 20, args: { "External id": i + 1 } },
        { ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1,
          tid: 1, ts: at + 1, dur: 1, args: { correlation: i + 1 } },
        { ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts: at + 5,
          dur: 10 + i, args: { device: 0, stream: 7, correlation: i + 1 } });
    }
    const file = join(cwd, "it's; touch pwned $(x).json");
    writeFileSync(file, JSON.stringify({ traceEvents: events }));
    const page = await open(pageOf(file), { hash: "#v=kernels" });
    const rows = await page.evaluate(() => {
      const t = __lamina.model.table("kernels");
      return Array.from({ length: t.rows }, (_, row) =>
        [t.str(row, "kernel"), t.num(row, "kernel_time_us")]);
    });
    for (const [i, name] of [...names, ...lost].entries()) {
      const time = 10_000 + i * 1000;
      const shown = rows.find(([, ns]) => ns === time)[0];
      for (const kind of ["name", "op"]) {
        // The address holds what the page knows of the name.
        const hash = `${kind}=${encodeURIComponent(shown)}`;
        await go(page, `#v=kernels&${hash}`, "kernels");
        const command = await copy(page);
        const what = JSON.stringify(name.slice(0, 30)) + " as " + kind;
        if (i >= names.length) {
          check.true(`${what}: left out`, (await foot(page)).includes(
            "It leaves out the filter by"));
          continue;
        }
        check.true(`${what}: nothing hidden`,
          // eslint-disable-next-line no-control-regex
          !/[\u0000-\u001f\u007f\u202a-\u202e\u2066-\u2069]/.test(command));
        const out = parseCsv(bash(command, cwd));
        check.equal(what, out.map((row) => ns(row.kernel_time_us)), [time]);
      }
    }
    check.equal("nothing ran", readdirSync(cwd).sort(),
                ["it's; touch pwned $(x).json", "lamina-part.json.gz"]);
  },
});
export default tests;
