// SPDX-License-Identifier: Apache-2.0
//
// What an expert asks of a page, by the shortest way: every click and key is
// counted, and five are enough.
import { join } from "node:path";

import { act, copied, open, pageOf, parseCsv, root, traces, until, written }
  from "./harness.mjs";
import { picture } from "./pictures.mjs";

const trace = traces.owlv2 ?? traces.train;
const rank = (n) => join(root, `samples/ranks/rank${n}.json.gz`);
const kMost = 5;

// Counts what a person does on a page.
function person(page) {
  let done = 0;
  return {
    get done() { return done; },
    click(target, view) {
      ++done;
      return act(page, view, () => target.click());
    },
    press(key, view) {
      ++done;
      return act(page, view, () => page.keyboard.press(key));
    },
    choose(target, value, view) {
      done += 2;  // opens it, and takes one
      return act(page, view, () => target.selectOption(value));
    },
    drag(from, to, view) {
      ++done;
      return act(page, view, async () => {
        await page.mouse.move(from.x, from.y);
        await page.mouse.down();
        await page.mouse.move((from.x + to.x) / 2, to.y);
        await page.mouse.move(to.x, to.y);
        await page.mouse.up();
      });
    },
  };
}
const selected = (page) => page.evaluate(() => __lamina.state().selected);
function few(check, who) {
  check.true(`${who.done} clicks and keys`, who.done > 0 && who.done <= kMost);
}

export default {
  "a: why is the GPU idle": async (check) => {
    const page = await open(pageOf(trace), { width: 1440 });
    const who = person(page);
    await who.press("g", "timeline");
    few(check, who);
    const panel = await page.locator("aside").innerText();
    check.true("the panel names causes, launch and neighbours",
      /Causes/.test(panel) && /launch/.test(panel) && /before/.test(panel));
    await picture(page, "task-a");
  },

  "b: which layer is slowest, and why": async (check) => {
    const page = await open(pageOf(traces.moe), { width: 1440 });
    const who = person(page);
    await who.click(page.locator("[data-k='tab.layers']"), "layers");
    await who.choose(page.locator("[data-k='layers.order']"), "time", "layers");
    await who.click(page.locator(".stacks [data-layer]").first(), "layers");
    few(check, who);
    const words = page.locator("[data-pair=compare]");
    check.true("it stands beside the median, kernel by kernel",
      /the median (layer )?of/.test(await words.textContent()));
    await words.scrollIntoViewIfNeeded();
    await picture(page, "task-b");
  },

  "c: the slowest call of the op farthest from its roofline": async (check) => {
    const page = await open(pageOf(traces.train), { width: 1440 });
    const who = person(page);
    await who.click(page.locator("[data-k='tab.ops']"), "ops");
    await who.click(page.locator("[data-k='ops.sort.above']"), "ops");
    await who.click(page.locator(".open").first(), "ops");
    await picture(page, "task-c");
    await who.click(page.locator("[data-k='call.slowest']"), "timeline");
    few(check, who);
    // By the engine's table, and by the events of that op.
    check.true("it is in the slowest call of that op", await page.evaluate(() => {
      const { device } = __lamina.model;
      const ops = __lamina.model.table("op_efficiency");
      let far = 0;
      for (let row = 1; row < ops.rows; ++row)
        if (ops.num(row, "above_roofline_us") > ops.num(far, "above_roofline_us"))
          far = row;
      const calls = new Map();
      for (let i = 0; i < device.count; ++i) {
        if (device.op[i] !== far + 1) continue;
        calls.set(device.call[i], (calls.get(device.call[i]) ?? 0) +
          device.dur[i]);
      }
      const at = device.uid.indexOf(Number(__lamina.state().selected));
      return device.op[at] === far + 1 &&
        calls.get(device.call[at]) === Math.max(...calls.values());
    }));
    await picture(page, "task-c-timeline");
  },

  "d: two steps compared": async (check) => {
    const page = await open(pageOf(traces.train), { width: 1440 });
    const who = person(page);
    await who.click(page.locator("[data-k='tab.steps']"), "steps");
    await who.click(page.locator("[data-step]").nth(0), "steps");
    await who.click(page.locator("[data-step]").nth(1), "steps");
    few(check, who);
    check.true("what differs, and by how much", /takes [\d.]+ \S+ (more|less) than/
      .test(await page.locator("[data-steps=compare]").textContent()));
    check.true("the causes are there",
               await page.locator(".fall li").count() > 3);
    await picture(page, "task-d");
  },

  "e: calls of a kernel, and who launched the slowest": async (check) => {
    const page = await open(pageOf(trace), { width: 1440 });
    const who = person(page);
    await who.click(page.locator("[data-k='tab.kernels']"), "kernels");
    await who.click(page.locator("main tbody td a").first(), "kernels");
    check.equal("only this kernel", await page.evaluate(() =>
      __lamina.state().chips.map((chip) => chip.kind)), ["name"]);
    await who.click(page.locator("[data-k='tab.timeline']"), "timeline");
    await who.click(page.locator("main tbody td a").first(), "timeline");
    few(check, who);
    check.true("it is the slowest", await page.evaluate(() => {
      const { device } = __lamina.model;
      const row = device.uid.indexOf(Number(__lamina.state().selected));
      return device.dur.slice(0, device.count).every((dur, i) =>
        device.kernel[i] !== device.kernel[row] || dur <= device.dur[row]);
    }));
    await who.click(page.locator("[data-k='panel.all']"), "timeline");
    few(check, who);
    const panel = await page.locator("aside").innerText();
    check.true("its launch and all of its name", /launch/.test(panel) &&
               /events, /.test(panel));
    check.equal("every call is a row, in order", await page.locator(
      "[data-k='events.box'] table").getAttribute("aria-rowcount"),
      String(1 + await page.evaluate(() => {
        const { device } = __lamina.model;
        const names = __lamina.model.table("kernels").raw("kernel");
        const row = device.uid.indexOf(Number(__lamina.state().selected));
        return device.kernel.slice(0, device.count).filter((kernel) =>
          names[kernel - 1] === names[device.kernel[row] - 1]).length;
      })));
    await picture(page, "task-e");
  },

  "f: sums of a range": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=timeline", width: 1440 });
    const who = person(page);
    const box = await page.locator("canvas[tabindex]").boundingBox();
    await who.drag({ x: box.x + 300, y: box.y + 8 },
                   { x: box.x + 500, y: box.y + 8 }, "timeline");
    few(check, who);
    const [chip] = (await page.evaluate(() => __lamina.state().chips));
    const [from, to] = chip.values[0].split("..").map(Number);
    const inside = await page.evaluate(([a, b]) => {
      const { start, dur, count } = __lamina.model.device;
      let sum = 0;
      for (let i = 0; i < count; ++i)
        sum += Math.max(0, Math.min(start[i] + dur[i], b) -
                        Math.max(start[i], a));
      return sum;
    }, [from, to]);
    check.equal("what lies inside", await page.evaluate(() =>
      __lamina.selection().time), inside);
    // The table of a window around it says the same.
    const agree = () => {
      const said = document.getElementById("matching").textContent.split(", ")[1];
      return document.querySelector("main").innerText.toLowerCase().includes(
          `together ${said} inside the window`);
    };
    // Drawn a moment after the numbers above it.
    await until(page, agree).catch(() => {});
    check.true("the table adds up to what the head says",
               await page.evaluate(agree));
    await picture(page, "task-f");
  },

  "i: what got slower, and both sides of it": async (check) => {
    const page = await open(written("diff", rank(0), rank(2), "--format",
                                    "html"), { width: 1440 });
    const who = person(page);
    await who.click(page.locator("[data-k='diff.worse']"), "diff");
    await picture(page, "task-i");
    await who.click(page.locator("main tbody tr a").first(), "timeline");
    few(check, who);
    const words = await page.locator("#matching").textContent();
    const [, a, b] = /A: (\d+) of .*; B: (\d+) of /.exec(words) ?? [];
    check.true(`both sides are there: ${words}`, a > 0 && b > 0);
    check.equal("over each other", await page.locator("[data-pair=aligned]")
      .count(), 1);
    await picture(page, "task-i-timeline");
  },

  "j: who waits for whom": async (check) => {
    const page = await open(written("ranks", join(root, "samples/ranks"),
      "--format", "html"), { width: 1440 });
    const who = person(page);
    check.true("in words, without a click", /0, 1, 3 wait for 2/.test(
      await page.locator(".waiting").innerText()));
    await picture(page, "task-j");
    await who.click(page.locator("h2:text-is('Collectives') + section td a")
      .first(), "ranks");
    few(check, who);
    check.true("why, at one collective", /held rank 2 up/.test(
      await page.locator("[data-cause]").textContent()));
    await page.locator("[data-k='ranks.events']").scrollIntoViewIfNeeded();
    await picture(page, "task-j-collective");
  },

  "g: copy what is seen": async (check) => {
    const page = await open(pageOf(trace), { width: 1440 });
    const who = person(page);
    await who.click(page.locator("[data-k='tab.kernels']"), "kernels");
    await who.click(page.locator(".legend [data-k='fam.gemm']"), "kernels");
    const shown = await page.locator("[data-k='kernels.box'] table")
      .getAttribute("aria-rowcount");
    let keys = 0;
    const rows = parseCsv(await copied(page, () => {
      ++keys;
      return page.keyboard.press("c");
    }));
    check.true("three clicks and keys", who.done + keys <= kMost);
    check.equal("the rows that are shown", rows.length + 1, Number(shown));
    const families = await page.evaluate(() => __lamina.model.families
      .filter(({ group }) => group === "gemm").map(({ name }) => name));
    check.equal("all of that family", rows.filter(({ family }) =>
      !families.includes(family)), []);
    await picture(page, "task-g");
    // And as a command.
    const command = await copied(page, () =>
      page.locator("[data-k=command]").click());
    check.true(`a command: ${command}`, /^lamina slice .*--where group=gemm/
      .test(command));
  },

  "h: the same state by link": async (check) => {
    const page = await open(pageOf(trace), { width: 1440 });
    const who = person(page);
    await who.press("g", "timeline");
    await who.press("m", "timeline");
    const link = await copied(page, () => page.locator("[data-k=link]").click());
    check.true("three clicks and keys", who.done + 1 <= kMost);
    await picture(page, "task-h");
    const again = await open(pageOf(trace), { hash: link.slice(
      link.indexOf("#")), width: 1440 });
    check.equal("the same selection", await selected(again), await selected(page));
    const seen = (one) => one.evaluate(() => [
      document.querySelector("canvas[tabindex]").dataset.window,
      document.querySelector("aside").innerText,
      document.querySelector("#areasums").textContent]);
    check.equal("window, panel and sums of the area", await seen(again),
                await seen(page));
  },
};
