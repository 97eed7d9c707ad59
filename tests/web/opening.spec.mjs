// SPDX-License-Identifier: Apache-2.0
//
// Opening: first screen, odd traces, damaged files, no script.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { closePages, folder, go, open, pageOf, traces } from "./harness.mjs";

function odd(events) {
  const traceEvents = events.map((e, i) => ({ ph: "X", cat: "kernel",
    name: "k" + i, pid: 0, tid: 7, ...e,
    args: { device: 0, stream: 7, ...e.args } }));
  return { traceEvents };
}
const kOdd = {
  "host only": odd([{ cat: "cpu_op", name: "aten::mm", ts: 1, dur: 5 }]),
  "one event": odd([{ ts: 10, dur: 5 }]),
  "no length": odd([1, 2, 3].map((ts) => ({ ts, dur: 0 }))),
  copies: odd([{ cat: "gpu_memcpy", name: "Memcpy HtoD (Pageable -> Device)",
                 ts: 5, dur: 50 }]),
  "300 streams": odd(Array.from({ length: 300 }, (_, i) =>
    ({ ts: i, dur: 2, tid: i, args: { stream: i } }))),
  "large times": odd([{ ts: 1.7e15, dur: 5 }, { ts: 1.7e15 + 9, dur: 5 }]),
  overlaps: odd([{ ts: 0, dur: 100 }, { ts: 10, dur: 5 }, { ts: 50, dur: 80 }]),
};

async function viewsOf(page) {
  return page.evaluate(() => [...document.querySelectorAll("nav a")]
    .map((a) => new URL(a.href).hash.match(/v=([a-z]+)/)[1]));
}

const tests = {
  "first screen": async (check) => {
    for (const [name, trace] of Object.entries(traces)) {
      const page = await open(pageOf(trace), { hash: "#v=overview" });
      check.equal(`${name}: view`, await page.evaluate(() =>
        document.documentElement.dataset.ready), "overview");
      check.true(`${name}: verdict`, await page.locator(".verdict").count());
      check.true(`${name}: cards`, await page.locator(".card").count() >= 4);
      check.true(`${name}: opportunities`,
                 await page.locator(".item").count() >= 1);
      check.true(`${name}: links`,
                 await page.locator(".verdict a, .card a").count() >= 5);
      // A finding has the title of its rule, not its number.
      const titles = await page.locator(".notes h3").allTextContents();
      check.true(`${name}: titles ${titles}`,
                 titles.every((title) => !/^\w+\.\w/.test(title)));
      await closePages();
    }
  },

  "odd traces": async (check) => {
    for (const [name, trace] of Object.entries(kOdd)) {
      const file = join(folder, name.replace(/ /g, "_") + ".json");
      writeFileSync(file, JSON.stringify(trace));
      const page = await open(pageOf(file));
      for (const view of await viewsOf(page)) {
        await go(page, "#v=" + view, view);
        check.true(`${name}: ${view}`, await page.evaluate(() =>
          document.querySelector("main").innerText.length > 10));
      }
      await closePages();
    }
  },

  "damaged files": async (check) => {
    const text = readFileSync(pageOf(traces.serve), "utf8");
    const damaged = {
      schema: text.replace('{"schema":2,', '{"schema":99,'),
      manifest: text.replace('"tables":[', '"tables":'),
      "short block": text.replace(
        /(id="block-string_bytes">"[^"]{100})[^"]*/, "$1"),
      "missing block": text.replace('id="block-string_bytes"', 'id="gone"'),
      "rows out of range": text.replace(/"name":"device","rows":\d+/,
                                        '"name":"device","rows":999999'),
    };
    for (const [name, content] of Object.entries(damaged)) {
      check.true(`${name}: changed`, content !== text);
      const file = join(folder, "damaged.html");
      writeFileSync(file, content);
      const page = await open(file, { mayFail: true, hash: "#v=timeline" });
      const alert = await page.locator("[role=alert]").textContent();
      check.true(`${name}: ${alert}`,
                 alert?.startsWith("This report cannot be shown"));
      await closePages();
    }
    // A script that is not the one the policy names does not run.
    const file = join(folder, "other_script.html");
    writeFileSync(file, text.replace(/script-src 'sha256-.{5}/,
                                     "script-src 'sha256-AAAAA"));
    const page = await open(file, { mayFail: true, script: false });
    check.true("summary stays", await page.locator("#static table").count());
  },

  // Each block carries a checksum: no changed byte becomes a wrong number.
  "a changed byte in a block": async (check) => {
    const text = readFileSync(pageOf(traces.serve), "utf8");
    for (const block of ["string_lengths", "string_bytes", "device", "host"]) {
      const mark = `id="block-${block}">"`;
      const begin = text.indexOf(mark) + mark.length;
      const length = text.indexOf('"', begin) - begin;
      for (let part = 1; part < 6; ++part) {
        const at = begin + Math.floor(length * part / 6);
        const file = join(folder, "changed.html");
        writeFileSync(file, text.slice(0, at) +
          (text[at] === "A" ? "B" : "A") + text.slice(at + 1));
        const page = await open(file, { mayFail: true, hash: "#v=timeline" });
        check.equal(`${block} at ${part}/6`,
          await page.locator("[role=alert]").textContent(),
          `This report cannot be shown: block ${block} cannot be unpacked. ` +
          "Write it again with lamina report --format html.");
        await page.context().close();
      }
    }
  },

  "without script": async (check) => {
    const page = await open(pageOf(traces.train), { script: false });
    const text = await page.locator("#static").innerText();
    check.true("names the file", text.includes("train_step.json.gz"));
    check.true("has a table", text.includes("busy_time"));
  },
};
export default tests;
