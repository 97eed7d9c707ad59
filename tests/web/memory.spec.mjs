// SPDX-License-Identifier: Apache-2.0
//
// Pages of memory snapshots: what is drawn is what the tables say, at every
// moment; a click finds the allocation that is drawn there, a drag zooms, keys
// move the moment, and texts and groups narrow what is seen.
import { join } from "node:path";

import { act, click, go, open, press, root, run, written } from
  "./harness.mjs";
import { picture } from "./pictures.mjs";

const sample = (name) => join(root, `samples/memory/${name}.pickle`);
const page = (name) => written("memory", sample(name), "--format", "html");
const tables = (name, ...args) => JSON.parse(run("memory", sample(name),
  "--format", "json", ...args)).tables;
const kMeasures = ["requested", "allocated", "active", "reserved"];

const frame = (tab, part = 0) =>
  tab.evaluate((k) => __lamina.memoryFrames()[k], part);

// The pixels of the drawing by colour, in CSS terms of the legend.
const colors = (tab) => tab.evaluate(() => {
  const canvas = document.querySelector("canvas.memory");
  const { data } = canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height);
  const seen = {};
  for (let i = 0; i < data.length; i += 4) {
    const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
    seen[key] = (seen[key] ?? 0) + 1;
  }
  return [...document.querySelectorAll(".legend.memory button")].map((one) => {
    const color = getComputedStyle(one.querySelector("i")).backgroundColor;
    return [one.textContent.trim().split(" ")[0],
            seen[color.replace(/[^\d,]/g, "")] ?? 0];
  });
});

export default {
  async "every moment is as the tables say"(check) {
    for (const name of ["train", "oom", "random"]) {
      const tab = await open(page(name));
      const all = tables(name, "--full", "--all");
      const rows = all.memory_timeline;
      for (const row of rows.filter((_, k) => k % Math.ceil(rows.length / 40)
                                    === 0)) {
        const at = await tab.evaluate((m) => __lamina.memoryAt(0, m, "category"),
                                      row.moment);
        const where = `${name} at ${row.moment}`;
        check.equal(where, [at.active, at.allocated, at.reserved],
                    [row.active, row.allocated, row.reserved]);
        const sums = Object.entries(row).filter(([k, v]) => v !== 0 && k !==
          "device" && k !== "moment" && k !== "time_us" &&
          !kMeasures.includes(k));
        check.equal(`${where}: categories`, Object.entries(at.sums).sort(),
                    sums.sort());
      }
      const peak = all.memory_summary.find((r) => r.measure === "active");
      for (const by of ["category", "op", "line", "module"]) {
        const { sums } = await tab.evaluate(([m, k]) =>
          __lamina.memoryAt(0, m, k), [peak.peak_moment, by]);
        const want = all["memory_peak_" + by]
          .filter((r) => r.key !== "(cached, free)")
          .map((r) => [r.key, r.bytes]);
        check.equal(`${name}: peak by ${by}`, Object.entries(sums).sort(),
                    want.sort());
      }
    }
  },

  async "all that the legend names is drawn, in every drawing"(check) {
    const tab = await open(page("train"));
    for (const mode of ["", "sums", "map"]) {
      await go(tab, `#v=memory&o.mem.mode=${mode}`, "memory");
      await picture(tab, `memory-${mode || "each"}`);
      for (const [name, pixels] of await colors(tab))
        check.true(`${mode} ${name}: ${pixels} pixels`, pixels > 20);
    }
    await go(tab, "#v=memory&o.mem.only=activation", "memory");
    for (const [name, pixels] of await colors(tab)) {
      check.equal(`only activations: ${name}`, pixels > 20,
                  name === "activation");
    }
  },

  async "a click, a drag and keys"(check) {
    const tab = await open(page("train"));
    const canvas = tab.locator("canvas.memory");
    const box = await canvas.boundingBox();
    const at = (x, y) => [box.x + 74 + (box.width - 84) * x,
                          box.y + 10 + (box.height - 32) * y];
    await act(tab, "memory", () => tab.mouse.click(...at(0.5, 0.95)));
    const chosen = await frame(tab);
    check.true("an allocation is chosen", chosen.pick >= 0);
    check.true("with its frames",
               await tab.locator("ol.frames li").count() > 0);
    check.true("at the middle",
               Math.abs(chosen.at - (chosen.from + chosen.to) / 2) <= 1);
    await tab.keyboard.press("Escape");
    await press(tab, "ArrowRight", "memory");
    check.equal("the next moment", (await frame(tab)).at, chosen.at + 1);
    await act(tab, "memory", async () => {
      await tab.mouse.move(...at(0.25, 0.3));
      await tab.mouse.down();
      await tab.mouse.move(...at(0.75, 0.8), { steps: 4 });
      await tab.mouse.up();
    });
    const near = await frame(tab);
    check.true("a quarter is left",
               Math.abs((near.to - near.from) * 2 - chosen.to + chosen.from) < 3 &&
               near.high - near.low < (chosen.high - chosen.low) * 0.6);
    await click(tab, tab.locator("[data-k='mem.whole']"), "memory");
    check.equal("the whole again", (await frame(tab)).to, chosen.to);
  },

  async "segments, stacks and two recordings"(check) {
    const tab = await open(page("oom"));
    await go(tab, "#v=segments&o.mem.at=90", "segments");
    await picture(tab, "memory-segments");
    const [row] = tables("oom", "--at", "90").memory_fragmentation
      .filter((r) => r.class === "all");
    const words = await tab.locator("main p.muted").first().textContent();
    check.true(`what is stuck: ${words}`,
               words.includes(row.split_free_bytes % (1 << 20) === 0
                 ? (row.split_free_bytes / (1 << 20)).toFixed(0) : " MiB"));
    await go(tab, "#v=stacks", "stacks");
    await picture(tab, "memory-stacks");
    const tree = tables("oom").memory_tree;
    check.true("boxes", await tab.locator("svg.icicle a").count() > 1 &&
               await tab.locator("svg.icicle a").count() <= tree.length);
    const both = await open(written("memory", "--diff", sample("oom"),
                                    sample("train"), "--format", "html"));
    await picture(both, "memory-diff");
    const [a, b] = await both.evaluate(() => __lamina.memoryFrames());
    check.true("peaks lie at one place", Math.abs((a.at - a.from) -
               (b.at - b.from)) < 1e-6);
    check.equal("one scale", [a.low, a.high], [b.low, b.high]);
  },

  async "every event of the recorder, found and looked at"(check) {
    const has = (event) => event !== null && event >= 0;
    for (const name of ["train", "oom", "random"]) {
      const tab = await open(page(name));
      const events = await tab.evaluate(() => __lamina.memoryEvents(0));
      const all = tables(name, "--all");
      const counted = {};
      for (const [action] of events)
        counted[action] = (counted[action] ?? 0) + 1;
      const stated = Object.fromEntries(all.memory_health
        .filter((r) => r.check.startsWith("events ") && r.amount > 0)
        .map((r) => [r.check.slice("events ".length), r.amount]));
      check.equal(`${name}: events by action`, Object.entries(counted).sort(),
                  Object.entries(stated).sort());
      const wrong = all.memory_allocations.filter((r) => {
        const [action, bytes, address] = has(r.start_event)
          ? events[r.start_event] : ["alloc", r.requested_bytes, r.address];
        const end = has(r.free_event) ? events[r.free_event][2]
          : r.address;
        return action !== "alloc" || bytes !== r.requested_bytes ||
          address !== r.address || end !== r.address;
      });
      check.equal(`${name}: as in memory_allocations`, wrong, []);
    }
    const tab = await open(page("train"));
    const all = tables("train", "--all").memory_allocations;
    const one = all.find((r) => r.start_event > 20 && r.free_event > 0);
    await go(tab, `#v=events&o.mem.at=${one.start_event + 1}`, "events");
    const current = tab.locator("tr[aria-current]");
    check.true("the event is in view", (await current.textContent())
      .startsWith(String(one.start_event)));
    const box = await tab.locator(".tablebox").boundingBox();
    const row = await current.boundingBox();
    check.true("inside of the box", row.y > box.y &&
               row.y + row.height <= box.y + box.height);
    check.true("open, with its stack", await tab
      .locator("tr.detail ol.frames li").count() > 0);
    await picture(tab, "memory-events");
    await press(tab, "ArrowDown", "events");
    check.true("the next event", (await current.textContent())
      .startsWith(String(one.start_event + 1)));
    // Of those in view: where the box scrolls to a row it draws its rows anew,
    // and a click whose ends meet two elements is none.
    const seen = await tab.evaluate(() => {
      const box = document.querySelector(".tablebox").getBoundingClientRect();
      return [...document.querySelectorAll("tr:not([aria-current]) [data-event]")]
        .find((one) => {
          const { top, bottom } = one.closest("tr").getBoundingClientRect();
          return top > box.top + 60 && bottom < box.bottom - 20;
        }).dataset.event;
    });
    await click(tab, tab.locator(`[data-event="${seen}"]`), "events");
    check.true("a click chooses the allocation, too", /mem\.pick=0\.\d+/
      .test(await tab.evaluate(() => location.hash)));
    const found = async (query) => {
      await go(tab, "#v=events&o.mem.q=" + encodeURIComponent(query), "events");
      return parseInt((await tab.locator("main h2").first().textContent())
        .split(": ")[1].replace(/,/g, ""), 10);
    };
    const bytes = await tab.evaluate(() => __lamina.memoryEvents(0));
    const inside = (r) => BigInt(r.address) <= BigInt(one.address) &&
      BigInt(one.address) < BigInt(r.address) + BigInt(r.bytes);
    const told = (list) => list.reduce((sum, r) => sum + has(r.start_event) +
      has(r.free_event) + (has(r.end_event) && r.end_event !== r.free_event),
      0);
    check.equal("by address", await found(one.address), told(all.filter(inside)));
    check.equal("by size", await found(">1MiB"),
                told(all.filter((r) => r.bytes >= 1 << 20)) +
                bytes.filter(([action, size]) => action.startsWith("segment") &&
                             size >= 1 << 20).length);
    check.true("by a pattern of a frame that is not the first",
               await found("/train\\.py:\\d+ main/") > 20);
    check.equal("nothing", await found("no such frame"), 0);
  },
};
