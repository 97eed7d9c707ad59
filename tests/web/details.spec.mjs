// SPDX-License-Identifier: Apache-2.0
//
// Details of single things: calls of an op, call stacks, counters, arrows
// between forward and backward.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { act, click, folder, go, ns, open, pageOf, tablesOf, traces, until }
  from "./harness.mjs";

const state = (page) => page.evaluate(() => __lamina.state());
const selection = (page) => page.evaluate(() => __lamina.selection());

// Two forward ops and a backward op with Python frames, a counter, and memory
// that grows and shrinks.
function smallTrace() {
  const events = [];
  let id = 0;
  const x = (cat, name, ts, dur, args = {}, tid = 1) => events.push(
    { ph: "X", cat, name, pid: 1, tid, ts, dur, args });
  const launch = (name, ts, kernels, args = {}, tid = 1) => {
    x("cpu_op", name, ts, 40, { "External id": ++id, ...args }, tid);
    kernels.forEach(([kernel, start, dur], i) => {
      const correlation = ++id;
      x("cuda_runtime", "cudaLaunchKernel", ts + 2 + 10 * i, 5,
        { correlation }, tid);
      events.push({ ph: "X", cat: "kernel", name: kernel, pid: 0, tid: 7,
        ts: start, dur, args: { device: 0, stream: 7, correlation } });
    });
  };
  let frame = 0;
  const python = (name, ts, dur, parent) => {
    x("python_function", name, ts, dur, { "Python id": ++frame,
      ...parent ? { "Python parent id": parent } : {} });
    return frame;
  };
  const main = python("train.py(10): main", 0, 900);
  python("model.py(20): forward", 10, 200, main);
  python("loss.py(30): loss", 300, 200, main);
  const dims = { "Input Dims": [[64, 64], [64, 64]],
                 "Input type": ["float", "float"] };
  launch("aten::mm", 20, [["gemm", 1000, 100], ["split", 1110, 20]],
         { ...dims, "Fwd thread id": 0, "Sequence number": 5 });
  launch("aten::mm", 100, [["gemm", 1200, 300], ["split", 1510, 40]], dims);
  launch("aten::mm", 320, [["gemm", 1700, 100], ["split", 1810, 20]], dims);
  launch("autograd::engine::evaluate_function: MmBackward0", 600, [["gemm_back", 2000, 200]],
         { "Fwd thread id": 1, "Sequence number": 5 }, 2);
  const flow = (ph, ts, tid) => events.push({ ph, id: 9, cat: "fwdbwd",
    name: "fwdbwd", pid: 1, tid, ts, bp: "e" });
  flow("s", 20, 1);
  flow("f", 600, 2);
  for (const [ts, value] of [[0, 3], [1000, 9], [2000, 6]])
    events.push({ ph: "C", name: "power", pid: 1, tid: 0, ts,
                  args: { watt: value } });
  for (const [ts, total] of [[25, 1 << 20], [1500, 3 << 20]])
    events.push({ ph: "i", s: "t", cat: "cpu_instant_event",
      name: "[memory]", pid: 1, tid: 1, ts, args: { "Total Reserved": 4 << 20,
      "Total Allocated": total, Bytes: 1 << 20, Addr: 64, "Device Id": 0,
      "Device Type": 1 } });
  return { traceEvents: events };
}

function smallPage() {
  const file = join(folder, "small.json");
  writeFileSync(file, JSON.stringify(smallTrace()));
  return pageOf(file);
}
const uidOf = (page, name, nth = 0) => page.evaluate(async ([n, at]) => {
  const { model } = __lamina;
  await model.require(["device", "kernels"]);
  const names = [...Array(model.device.count).keys()].filter((row) =>
    model.table("kernels").str(model.device.kernel[row] - 1, "kernel") === n);
  return model.device.uid[names[at]];
}, [name, nth]);

export default {
  "an op opens to its kernels and calls": async (check) => {
    const page = await open(smallPage(), { hash: "#v=ops" });
    const button = page.getByRole("button",
      { name: "Kernels and calls of aten::mm" });
    await click(page, button, "ops");
    const rows = () => page.locator(".opcalls tbody tr").evaluateAll((list) =>
      list.map((row) => [...row.children].map((cell) => cell.textContent)));
    check.equal("kernels by position", await rows(), [
      ["1", "gemm", "3", "500.0 \u00b5s", "166.7 \u00b5s", "100.0 \u00b5s",
       "300.0 \u00b5s"],
      ["2", "split", "3", "80.00 \u00b5s", "26.67 \u00b5s", "20.00 \u00b5s",
       "40.00 \u00b5s"]]);
    const bars = page.locator(".calls a");
    check.equal("calls by length", await bars.evaluateAll((list) =>
      list.map((bar) => bar.dataset.calls)), ["2", "1"]);
    const opened = (await state(page)).options["ops.open"];
    check.true("open rows are part of the address", /^\d+$/.test(opened));
    await click(page, bars.nth(1), "timeline");
    check.equal("a bar leads to its events", await selection(page),
                { count: 2, time: 340_000 });
    await go(page, `#v=ops&o.ops.open=${opened}&dur=>50000`, "ops");
    check.equal("under a filter", (await rows()).map((row) => row.slice(0, 3)),
                [["1", "gemm", "3"]]);
    await click(page, button, "ops");
    check.equal("closed", await page.locator(".opcalls").count(), 0);
  },

  "calls of real ops": async (check) => {
    const trace = traces.owlv2 ?? traces.train;
    const page = await open(pageOf(trace), { hash: "#v=ops" });
    const ops = tablesOf(trace)("op_efficiency");
    for (const row of ops.slice(0, 3)) {
      await go(page, `#v=ops&o.ops.open=${row.first_uid}`, "ops");
      const calls = await page.locator(".calls a").evaluateAll((list) =>
        list.reduce((sum, bar) => sum + Number(bar.dataset.calls), 0));
      check.equal(`${row.op}: calls`, calls, Number(row.count));
      const events = await page.locator(".opcalls tbody tr td:nth-child(3)")
        .allTextContents();
      check.equal(`${row.op}: kernels`, events.reduce((sum, text) =>
        sum + Number(text.replace(/,/g, "")), 0), Number(row.kernels));
    }
    // Own time of modules and time by shapes add up to all time.
    const all = await selection(page);
    for (const by of ["module", "dims", "op", "family"]) {
      await go(page, `#v=ops&o.ops.by=${by}`, "ops");
      const links = await page.locator(".view-ops td:nth-child(4) a")
        .evaluateAll((list) => list.slice(0, 8).map((a) =>
          [a.textContent, a.getAttribute("href")]));
      for (const [text, href] of links) {
        await go(page, href);
        check.equal(`${by} ${text}`, (await selection(page)).count,
                    Number(text.replace(/,/g, "")));
      }
      if (by !== "module") continue;
      const modules = tablesOf(trace)("modules");
      const own = modules.reduce((sum, row) =>
        sum + ns(row.self_kernel_time_us), 0);
      check.true("modules hold no more than all", own <= all.time);
    }
  },

  "the stack of a launch": async (check) => {
    const page = await open(smallPage());
    const uid = await uidOf(page, "gemm", 1);
    await go(page, `#v=timeline&sel=${uid}`, "timeline");
    const frames = page.locator(".frames li a");
    check.equal("innermost first", await frames.allTextContents(),
      ["aten::mm", "model.py(20): forward", "train.py(10): main"]);
    await click(page, frames.nth(1), "timeline");
    check.equal("a frame filters to what it launched", await selection(page),
                { count: 4, time: 460_000 });
    await go(page, "#v=timeline&not.frame=" +
      (await state(page)).chips[0].values[0], "timeline");
    check.equal("or to the rest", await selection(page),
                { count: 3, time: 320_000 });
    await go(page, "#v=ops&frame=999999", "ops");
    check.equal("no such frame", await selection(page), { count: 0, time: 0 });
  },

  "forward and backward": async (check) => {
    const page = await open(smallPage());
    const uid = await uidOf(page, "gemm_back");
    await go(page, `#v=timeline&sel=${uid}`, "timeline");
    const canvas = page.locator("[data-k='timeline.canvas']");
    await until(page, () => document.querySelector(
      "[data-k='timeline.canvas']").dataset.arrows !== undefined);
    check.equal("arrows", await canvas.getAttribute("data-arrows"),
                "launch autograd");
    const entry = (name) => page.locator("aside dt", { hasText: name })
      .locator("xpath=following-sibling::dd[1]").locator("a");
    await click(page, entry(/^forward$/), "timeline");
    check.equal("the forward op", await page.locator("aside h2")
      .textContent(), "aten::mm");
    await click(page, entry(/^backward$/), "timeline");
    check.equal("and back", await page.locator("aside h2").textContent(),
                "autograd::engine::evaluate_function: MmBackward0");
  },

  "counters": async (check) => {
    // From the first host event on: the page opens on device work.
    const page = await open(smallPage(), { hash: "#v=timeline&z=0..2200000",
      height: 1400 });
    const tip = page.locator(".tip");
    const canvas = page.locator("[data-k='timeline.canvas']");
    const at = async (key, t) => {
      const place = await page.evaluate(([k, when]) =>
        __lamina.counterPlace(k, when), [key, t]);
      await canvas.hover({ position: place });
      return tip.textContent();
    };
    const series = await page.evaluate(() =>
      __lamina.model.manifest.counters.map((c) => c.name));
    check.equal("series", series,
      ["Allocated GPU 0", "Reserved GPU 0", "power watt (1)"]);
    check.equal("before the first sample", await at("counter.Allocated-GPU-0", 1_000_000),
                "Allocated GPU 0: 1.000 MiB");
    check.equal("memory", await at("counter.Allocated-GPU-0", 2_000_000),
                "Allocated GPU 0: 3.000 MiB");
    check.equal("power", await at("counter.power-watt-1-", 500_000), "power watt (1): 3");
    check.equal("power later", await at("counter.power-watt-1-", 1_500_000),
                "power watt (1): 9");
    // Seven are launched by 605 us, none has begun before 1000 us.
    check.equal("queue", await at("queue0", 900_000), "Queued GPU 0: 7");
    check.equal("queue in the middle", await at("queue0", 1_650_000),
                "Queued GPU 0: 3");
    await act(page, "timeline", () => page.evaluate(() => {
      location.hash = "#v=timeline&o.timeline.tracks=counter.power-watt-1-";
    }));
    check.true("a track can be hidden", (await page.locator("#tracks summary")
      .textContent()).includes("1 hidden"));

    // The address means the same counter where the trace has no others.
    const file = join(folder, "power.json");
    writeFileSync(file, JSON.stringify({ traceEvents: smallTrace().traceEvents
      .filter((event) => event.name !== "[memory]") }));
    const alone = await open(pageOf(file), { hash:
      await page.evaluate(() => location.hash) });
    check.equal("another page", await alone.evaluate(() =>
      __lamina.model.manifest.counters.map((c) => c.name)), ["power watt (1)"]);
    check.equal("hidden there", await alone.locator(
      "[data-k='tl.show.counter.power-watt-1-']").isChecked(), false);
  },
};
