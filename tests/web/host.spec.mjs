// SPDX-License-Identifier: Apache-2.0
//
// Host stacks: trees against the events that they are made of, a name of the
// host in the search, a function with its callers.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

import { act, click, folder, go, open, pageOf, press, search, traces } from
  "./harness.mjs";

const trace = traces.owlv2 ?? traces.train;
const load = (page) => page.evaluate(() =>
  __lamina.model.require(["host", "device", "kernels"]));

export default {
  "stacks add up": async (check) => {
    for (const name of ["train", "serve", "qwen"]) {
      if (!traces[name]) continue;
      const page = await open(pageOf(traces[name]));
      await load(page);
      const wrong = await page.evaluate(() => {
        const wrong = [];
        const look = (at, path) => {
          const sum = at.children.reduce((all, child) => all + child.time, 0);
          if (path && sum + at.self !== at.time) wrong.push([path, "self"]);
          if (!path && sum !== at.time) wrong.push(["root", "sum"]);
          for (const child of at.children) look(child, path + "/" + child.name);
        };
        const all = __lamina.hostTree(0, false);
        const idle = __lamina.hostTree(0, true);
        look(all, "");
        look(idle, "");
        const count = (at) => at.calls + at.children.reduce((sum, child) =>
          sum + count(child), 0);
        return { wrong: wrong.slice(0, 5), all: all.time, idle: idle.time,
                 calls: count(all), deep: all.children.length };
      });
      check.equal(`${name}: every time is its own and its children's`,
                  wrong.wrong, []);
      check.true(`${name}: idle is a part`, wrong.idle <= wrong.all &&
                 wrong.all > 0);
      // Times that the thread is in, added up one nanosecond at a time.
      const plain = await page.evaluate(() => {
        const { host, hostTracks } = __lamina.model;
        const threads = new Map();
        for (const t of hostTracks) {
          const key = [t.process, t.thread].join();
          threads.set(key, [...threads.get(key) ?? [], t]);
        }
        const size = (list) => list.reduce((n, t) => n + t.end - t.begin, 0);
        const [most] = [...threads.values()].sort((a, b) => size(b) - size(a));
        const rows = most.flatMap((t) => Array.from({ length: t.end - t.begin },
          (_, i) => t.begin + i)).sort((a, b) => host.start[a] - host.start[b]);
        let [end, sum] = [-Infinity, 0];
        for (const row of rows) {
          const stop = host.start[row] + host.dur[row];
          sum += Math.max(0, stop - Math.max(end, host.start[row]));
          end = Math.max(end, stop);
        }
        return { sum, calls: rows.length };
      });
      check.equal(`${name}: every event once`, wrong.calls, plain.calls);
      check.true(`${name}: the union of the thread`, wrong.all === plain.sum);
    }
  },

  "a name of the verdict is found": async (check) => {
    if (!traces.owlv2) return check.skip("no trace of OWLv2");
    const page = await open(pageOf(traces.owlv2));
    const hits = await search(page, "zoom_shift");
    check.true("a group of host names", hits.some((hit) =>
      /host names?$/.test(hit)));
    await page.keyboard.press("ArrowDown");
    await press(page, "Enter", "timeline");
    check.true("leads to the event", (await page.locator("aside")
      .innerText()).includes("zoom_shift"));
    const longest = await page.evaluate(() => {
      const { host } = __lamina.model;
      const at = host.uid.indexOf(Number(__lamina.state().selected));
      return host.name.every((name, i) => name !== host.name[at] ||
                             host.dur[i] <= host.dur[at]);
    });
    check.true("the longest of them", longest);
  },

  "who calls it, and what it calls": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=host" });
    check.true("idle time first", /no GPU works/.test(
      await page.locator("main").innerText()));
    await page.locator("[data-k='host.time']").selectOption("all");
    await go(page, "#v=host&o.host.time=all", "host");
    const rows = page.locator("main tbody tr");
    const name = await rows.nth(1).locator("a").first().textContent();
    await act(page, "host", () => rows.nth(1).locator("a").first().click());
    const titles = await page.locator(".flames h2").allTextContents();
    check.equal("two flame graphs", titles, ["What it calls", "Who calls it"]);
    const tops = await page.locator(".flames svg.icicle").evaluateAll((list) =>
      list.map((svg) => svg.querySelector("title").textContent));
    check.true(`both begin with ${name}: ${tops}`, tops.every((top) =>
      top.startsWith(name.slice(0, 20))));
    const times = tops.map((top) => top.slice(top.lastIndexOf(": ")));
    check.equal("with the same time", times[0], times[1]);
    await click(page, page.locator("main p a").first(), "host");
    check.equal("all stacks again", (await page.locator(".flames h2")
      .allTextContents()), ["Stacks"]);
    // The longest of a function.
    await click(page, rows.first().locator("a").nth(1), "timeline");
    check.true("a call", await page.evaluate(() =>
      __lamina.state().selected !== ""));
  },

  "Python functions, the longest of them in a small page": async (check) => {
    const raw = JSON.parse(gunzipSync(readFileSync(traces.train)));
    const all = raw.traceEvents.filter((e) => e.cat === "python_function" &&
      !e.name.startsWith("nn.Module: "));
    const python = (page) => page.evaluate(async () => {
      await __lamina.model.require(["host"]);
      const { host, hostTracks } = __lamina.model;
      return hostTracks.filter((t) => t.kind === "python").flatMap((t) =>
        [...host.dur.slice(t.begin, t.end)]);
    });
    check.equal("all of them", (await python(await open(pageOf(traces.train))))
      .length, all.length);
    if (!traces.owlv2) return check.skip("no trace with many functions");
    const whole = await python(await open(pageOf(traces.owlv2)));
    const page = await open(pageOf(traces.owlv2, "--html-max-mb", "0.6"));
    const some = await python(page);
    check.true(`${some.length} of ${whole.length}`, some.length > 1000 &&
               some.length < whole.length);
    const least = some.reduce((a, b) => Math.min(a, b));
    check.equal("the longest", some.length,
                whole.filter((dur) => dur >= least).length);
    await go(page, "#v=health", "health");
    check.true("and it says so", /Python functions shorter than/.test(
      await page.locator("main").innerText()));
  },

  "a long call right behind a short one": async (check) => {
    const file = join(folder, "behind.json");
    const call = (name, ts, dur) => ({ ph: "X", cat: "cpu_op", name, pid: 1,
                                       tid: 1, ts, dur });
    writeFileSync(file, JSON.stringify({ traceEvents: [
      call("aten::short", 100, 1), call("aten::long", 101.5, 400_000),
      { ph: "X", cat: "kernel", name: "k", pid: 0, tid: 7, ts: 900_000,
        dur: 5, args: { device: 0, stream: 7 } }] }));
    const page = await open(pageOf(file), { hash: "#v=timeline&z=0..1000000000" });
    const color = await page.evaluate(() => {
      const { host } = __lamina.model;
      const long = host.dur.indexOf(Math.max(...host.dur));
      const canvas = document.querySelector("canvas[tabindex]");
      const scale = canvas.width / canvas.clientWidth;
      const x = (__lamina.trackLeft(host.uid[long]) + 200) * scale;
      const y = (__lamina.trackTop(host.uid[long]) + 2) * scale;
      const [r, g, b] = canvas.getContext("2d").getImageData(x, y, 1, 1).data;
      return [r, g, b].join();
    });
    check.equal("it is drawn", color, "213,220,230");
  },

  "no host, other widths": async (check) => {
    for (const [width, theme] of [[390, "light"], [1920, "dark"]]) {
      const page = await open(pageOf(trace), { hash: "#v=host", width, theme });
      check.true(`no sideways scroll at ${width}`, await page.evaluate(() =>
        document.documentElement.scrollWidth <= innerWidth));
    }
    const page = await open(pageOf(traces.train));
    for (const hash of ["#v=host&o.host.name=99999", "#v=host&o.host.name=x",
                        "#v=host&o.host.thread=77&o.host.time=zz"]) {
      await go(page, hash, "host");
      check.true(hash, await page.locator(".flames").count() === 1);
    }
  },
};
