// SPDX-License-Identifier: Apache-2.0
//
// Filters, search, timeline, icicle, layers, sorting, deep links.
import { act, click, go, ns, open, pageOf, press, ready, search, tablesOf,
  traces, until } from "./harness.mjs";

const trace = traces.owlv2 ?? traces.train;
const selection = (page) => page.evaluate(() => __lamina.selection());
const state = (page) => page.evaluate(() => __lamina.state());

function randomly(seed) {
  let now = seed;
  return (n) => {
    now = (now * 1103515245 + 12345) % 2147483648;
    return Math.floor(now / 65536) % n;
  };
}

const tests = {
  "sums of a range are clipped to it": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=kernels" });
    // A range that begins and ends inside of the longest two events.
    const [from, to] = await page.evaluate(() => {
      const { start, dur, count } = __lamina.model.device;
      const rows = [...Array(count).keys()].sort((a, b) => dur[b] - dur[a])
        .slice(0, 2).sort((a, b) => start[a] - start[b]);
      return rows.map((row) => Math.floor(start[row] + dur[row] / 2));
    });
    await go(page, `#v=kernels&t=${from}..${to}`, "kernels");
    const { inside, whole, lanes } = await page.evaluate(([a, b]) => {
      const { start, dur, count } = __lamina.model.device;
      let [inside, whole] = [0, 0];
      for (let i = 0; i < count; ++i) {
        const end = start[i] + dur[i];
        if (start[i] >= b || end <= a) continue;
        inside += Math.min(end, b) - Math.max(start[i], a);
        whole += dur[i];
      }
      return { inside, whole, lanes: __lamina.model.lanes.length };
    }, [from, to]);
    check.true("events cross the edges", whole > inside);
    check.equal("the sum is what lies inside", (await selection(page)).time,
                inside);
    if (lanes === 1)
      check.true("one stream is never busier than the range", inside <= to - from);
    for (const [view, column, table] of [["kernels", "kernel", "kernels"],
                                         ["modules", "module", "modules"]]) {
      await go(page, `#v=${view}&t=${from}..${to}`, view);
      const sum = await page.evaluate(async ([c, t]) => {
        await __lamina.model.require([t]);
        const { time } = __lamina.sums(c, __lamina.model.table(t).rows + 1);
        return time.reduce((all, ns) => all + ns, 0);
      }, [column, table]);
      check.equal(`${view} add up to it`, sum, inside);
    }
  },

  "filters combine": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=kernels" });
    const all = await selection(page);
    const choices = await page.evaluate(async () => {
      await __lamina.model.require(["kernels", "op_efficiency", "modules",
        "layers", "passes", "op_categories", "device"]);
      const { model } = __lamina;
      const column = (table, name) => {
        const t = model.table(table);
        return t ? [...Array(Math.min(t.rows, 12)).keys()]
          .map((row) => t.str(row, name)).filter((v) => v && v.length < 300)
          : [];
      };
      return { fam: column("op_categories", "group"),
        name: column("kernels", "kernel"), op: column("kernels", "op"),
        row: column("op_efficiency", "first_uid"),
        mod: column("modules", "module"), layer: column("layers", "first_uid"),
        pass: column("passes", "pass"),
        t: ["0..200000000", "130000000..160000000"], dur: [">5000", "<20000"] };
    });
    const kinds = Object.keys(choices).filter((k) => choices[k].length > 0);
    const random = randomly(11);
    // Brute force over the masks of the single chips.
    const one = async (chip) => {
      await go(page, "#v=kernels&" + chip, "kernels");
      return page.evaluate(() => {
        const state = __lamina.state();
        return [...__lamina.filterMask(state.chips)];
      });
    };
    for (let i = 0; i < 30; ++i) {
      const chips = new Map();
      for (let k = 0; k <= random(3); ++k) {
        const kind = kinds[random(kinds.length)];
        const not = random(4) === 0 ? "not." : "";
        const values = [choices[kind][random(choices[kind].length)],
                        choices[kind][random(choices[kind].length)]];
        chips.set(not + kind, `${not}${kind}=` + values.slice(0, 1 + random(2))
          .map(encodeURIComponent).join(","));
      }
      const masks = [];
      for (const chip of chips.values()) masks.push(await one(chip));
      const hash = [...chips.values()].join("&");
      await go(page, "#v=kernels&" + hash, "kernels");
      // Of an event at the edge of a range the part inside counts.
      const ranges = [...chips].filter(([key]) => key === "t")
        .flatMap(([, chip]) => chip.slice(2).split(",")
          .map((range) => decodeURIComponent(range).split("..").map(Number)));
      const expected = await page.evaluate(([lists, within]) => {
        const { start, dur } = __lamina.model.device;
        let count = 0;
        let time = 0;
        // No two events of the union of ranges are counted twice.
        const apart = [];
        for (const [from, to] of within.sort((a, b) => a[0] - b[0])) {
          if (apart.length > 0 && from <= apart.at(-1)[1])
            apart.at(-1)[1] = Math.max(apart.at(-1)[1], to);
          else apart.push([from, to]);
        }
        for (let row = 0; row < dur.length; ++row) {
          if (!lists.every((mask) => mask[row])) continue;
          ++count;
          time += within.length === 0 ? dur[row] : apart.reduce((all, [a, b]) =>
            all + Math.max(0, Math.min(b, start[row] + dur[row]) -
                           Math.max(a, start[row])), 0);
        }
        return { count, time };
      }, [masks, ranges]);
      check.equal(hash, await selection(page), expected);
      const words = await page.locator("#matching").textContent();
      check.true(`${hash}: chips say it`, words.startsWith(
        expected.count.toLocaleString("en-US") + " of "));
      // All views agree on what passes.
      for (const view of ["ops", "timeline", "modules"]) {
        await go(page, `#v=${view}&${hash}`, view);
        check.equal(`${view} of ${hash}`, await selection(page), expected);
      }
    }
    await go(page, "#v=kernels&fam=gemm&not.dur=>5000&pass=0", "kernels");
    for (let left = 3; left > 0; --left) {
      await click(page, page.locator(".chip .close").first(), "kernels");
      check.equal("chips left", (await state(page)).chips.length, left - 1);
    }
    check.equal("back at the start", await selection(page), all);
    await go(page, "#v=kernels&fam=gemm", "kernels");
    await press(page, "Escape", "kernels");
    check.equal("Escape clears", await selection(page), all);
    await go(page, "#v=kernels&fam=gemm", "kernels");
    await click(page, page.locator(".chip .kind"), "kernels");
    const flipped = (await state(page)).chips[0];
    check.equal("negated", [flipped.kind, flipped.not], ["fam", true]);
  },

  "search": async (check) => {
    const page = await open(pageOf(trace));
    await page.keyboard.press("/");
    await until(page, () => document.activeElement.dataset.k === "search");
    const found = await search(page, "gemm");
    check.true("groups of names", found.some((t) => /kernels?$/.test(t)));
    const none = await search(page, "zzzzqqqq");
    check.true("a sentence for no match", none.some((t) =>
      t.startsWith("No name matches")) || none.some((t) =>
      t.includes("in any name")));
    // Patterns that backtrack without end are stopped.
    for (const pattern of ["/(a+)+$/", "/(x|x)*y/", "/a*a*a*a*a*a*b/"])
      check.true(pattern, (await search(page, pattern)).length > 0);
    await search(page, "dur>1ms");
    await press(page, "Enter", "timeline");
    const { chips } = await state(page);
    check.equal("length", chips, [{ kind: "dur", values: [">1000000"],
                                    not: false }]);
    check.equal("sum of length", await selection(page),
      await page.evaluate(() => {
        const long = [...__lamina.model.device.dur].filter((d) => d > 1e6);
        return { count: long.length, time: long.reduce((a, b) => a + b, 0) };
      }));
    if (trace === traces.owlv2) {
      await search(page, "shape:5185");
      await page.keyboard.press("ArrowDown");
      await press(page, "Enter", "ops");
      check.equal("shape", (await state(page)).chips.at(-1).kind, "row");
    }
  },

  "timeline": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=timeline" });
    const canvas = page.locator("[data-k='timeline.canvas']");
    // The window that is drawn; none while a drawing is due.
    const window = async () => {
      await until(page, () => document.querySelector(
        "[data-k='timeline.canvas']").dataset.window !== undefined);
      return (await canvas.getAttribute("data-window")).split("..")
        .map(Number);
    };
    await canvas.focus();
    await page.keyboard.press("f");
    const whole = await window();
    await page.keyboard.press("w");
    const [a, b] = await window();
    check.true("W zooms in", b - a < (whole[1] - whole[0]) * 0.7);
    await page.keyboard.press("f");
    check.equal("F fits", await window(), whole);
    const random = randomly(3);
    let inside = true;
    for (let i = 0; i < 200; ++i) {
      await page.keyboard.press("wwsadwwad"[random(9)]);
      if (i % 20 !== 0) continue;
      const [from, to] = await window();
      inside = inside && from >= whole[0] - 1 && to <= whole[1] + 1 &&
        to - from >= 199;
    }
    check.true("zooms stay in the trace", inside);

    // The middle of the drawn box of an event selects it.
    const events = await page.evaluate(() => {
      const { device } = __lamina.model;
      const list = [];
      for (let i = 0; i < device.count; i += Math.ceil(device.count / 40)) {
        if (device.dur[i] > 300)
          list.push({ uid: device.uid[i], start: device.start[i],
                      dur: device.dur[i] });
      }
      return list;
    });
    for (const event of events) {
      const room = event.dur * 3;
      await go(page, `#v=timeline&z=${Math.round(event.start - room)}..` +
        Math.round(event.start + event.dur + room), "timeline");
      const [from, to] = await window();
      const box = await canvas.boundingBox();
      const gutter = 132;
      const x = gutter + (event.start + event.dur / 2 - from) / (to - from) *
        (box.width - gutter);
      const y = await page.evaluate((uid) => __lamina.trackTop(uid),
                                    event.uid);
      await act(page, "timeline", () =>
        canvas.click({ position: { x, y: y + 8 } }));
      check.equal(`event ${event.uid}`, (await state(page)).selected,
                  String(event.uid));
    }

    // Sums of the buckets equal the events, at every level, with a filter.
    await go(page, "#v=timeline&fam=gemm", "timeline");
    const sums = await page.evaluate(() => {
      const { model } = __lamina;
      const mask = __lamina.filterMask(__lamina.state().chips);
      return model.lanes.map((lane, i) => {
        let busy = 0;
        let match = 0;
        for (let row = lane.begin; row < lane.end; ++row) {
          busy += model.device.dur[row];
          if (mask[row]) match += model.device.dur[row];
        }
        const wrong = __lamina.pyramid(i).filter((level) =>
          level.busy.reduce((x, y) => x + y, 0) !== busy ||
          level.match.reduce((x, y) => x + y, 0) !== match);
        return wrong.length;
      });
    });
    check.equal("levels with a wrong sum", sums, sums.map(() => 0));

    // Steps through events and back.
    const first = events[0].uid;
    await go(page, `#v=timeline&sel=${first}`, "timeline");
    await press(page, "ArrowRight", "timeline");
    const next = (await state(page)).selected;
    check.true("arrow steps", next !== String(first));
    await press(page, "ArrowLeft", "timeline");
    check.equal("and back", (await state(page)).selected, String(first));
    await press(page, "m", "timeline");
    const { start, dur } = events[0];
    check.equal("M marks the time", (await state(page)).options["timeline.area"],
                `${start}..${start + dur}`);
    await press(page, "m", "timeline");
    check.equal("and again not", (await state(page)).options["timeline.area"],
                undefined);
  },

  "icicle and layers": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=modules" });
    const sums = await page.evaluate(() => {
      const bad = [];
      const walk = (node) => {
        const below = node.children.reduce((sum, c) => sum + c.time, 0);
        if (below > node.time) bad.push(node.key);
        node.children.forEach(walk);
      };
      const [merged, plain] = [true, false].map(__lamina.moduleTree);
      walk(merged);
      walk(plain);
      return { bad, equal: merged.time === plain.time, time: plain.time };
    });
    check.equal("children exceed the parent", sums.bad, []);
    check.true("merging keeps the sum", sums.equal);
    check.equal("all time", sums.time, (await selection(page)).time);
    const modules = tablesOf(trace)("modules");
    const box = page.locator("[data-box]").nth(1);
    await click(page, box, "modules");
    const [chip] = (await state(page)).chips;
    check.equal("click filters", chip.kind, "mod");
    check.equal("to the time of the module", (await selection(page)).time,
      modules.filter((row) => chip.values.includes(row.module))
        .reduce((sum, row) => sum + ns(row.kernel_time_us), 0));
    await page.locator("[data-box]").nth(1).focus();
    await press(page, "Enter", "modules");
    const zoomed = (await state(page)).options["modules.root"];
    check.true("Enter zooms", zoomed);
    await press(page, "Backspace", "modules");
    const above = (await state(page)).options["modules.root"] ?? "";
    check.true("Backspace goes up", above.length < zoomed.length &&
               zoomed.startsWith(above));

    const layers = tablesOf(trace)("layers");
    if (layers.length === 0) return;
    await go(page, "#v=layers&o.layers.pass=0", "layers");
    const bars = page.locator("[data-layer]");
    await click(page, bars.nth(1), "layers");
    await click(page, bars.nth(2), "layers");
    const chosen = (await state(page)).chips[0].values;
    check.equal("sum of two layers", (await selection(page)).time,
      layers.filter((row) => chosen.includes(row.first_uid))
        .reduce((sum, row) => sum + ns(row.kernel_time_us), 0));
    check.true("two layers are compared",
      await page.locator("text=kernel by kernel").count() >= 2);
  },

  "sorting": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=ops" });
    const heads = await page.locator("th button").count();
    for (let i = 0; i < heads; ++i) {
      for (let turn = 0; turn < 2; ++turn) {
        await click(page, page.locator("th button").nth(i), "ops");
        const empties = await page.evaluate((column) => {
          const box = document.querySelector(".tablebox");
          box.scrollTop = 0;
          const cells = [...document.querySelectorAll("main tbody tr:not(.room)")]
            .map((row) => row.children[column].textContent.trim() === "");
          const first = cells.indexOf(true);
          return first < 0 || cells.slice(first).every((empty) => empty);
        }, i);
        check.true(`column ${i}: empty cells last`, empties);
      }
    }
    check.true("few rows in the document",
      await page.locator("main tbody tr").count() <= 300);
  },

  "deep links": async (check) => {
    const page = await open(pageOf(trace));
    const uid = await page.evaluate(async () => {
      await __lamina.model.require(["device"]);
      return __lamina.model.device.uid[9];
    });
    const states = [];
    for (const view of ["overview", "timeline", "steps", "layers", "modules", "ops",
                        "roofline", "kernels", "health"]) {
      states.push(`#v=${view}`, `#v=${view}&fam=gemm`,
        `#v=${view}&dur=>3000&sel=${uid}`,
        `#v=${view}&z=120000000..150000000&theme=dark`,
        `#v=${view}&o.ops.sort=calls%2B&o.kernels.sort=count-&not.fam=gemm`);
    }
    // Opened by an address, and reached within a page by the one that it then
    // has.
    const fresh = await open(pageOf(trace));
    const picture = (where) => where.evaluate(() => {
      const canvas = document.querySelector("[data-k='timeline.canvas']");
      return JSON.stringify([document.querySelector("main").innerText,
                             canvas ? canvas.toDataURL() : ""]);
    });
    for (const hash of states) {
      await fresh.goto("about:blank");
      await fresh.goto("file://" + pageOf(trace) + hash);
      await ready(fresh);
      await go(page, await fresh.evaluate(() => __lamina.href()));
      check.true(hash, await picture(fresh) === await picture(page));
    }
    await page.goto("file://" + pageOf(trace));
    await ready(page);
    const walked = ["ops", "kernels", "timeline", "modules"];
    for (const view of walked) {
      await click(page, page.locator(`[data-k='tab.${view}']`), view);
    }
    for (const view of [...walked].reverse().slice(1)) {
      await page.goBack();
      await ready(page, view);
    }
    await page.goForward();
    await ready(page, "kernels");
    check.equal("forward", (await state(page)).view, "kernels");
  },

  "links of numbers lead to their events": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=kernels" });
    const kernels = tablesOf(trace)("kernels");
    const parse = (text) => Number(text.replace(/,/g, ""));
    for (const view of ["kernels", "ops"]) {
      await go(page, "#v=" + view, view);
      const links = await page.evaluate((name) =>
        [...document.querySelectorAll(".view-" + name + " td a")]
          .filter((a) => /^[\d,]+$/.test(a.textContent))
          .slice(0, 25).map((a) => [a.textContent, a.getAttribute("href")]),
        view);
      check.true(`${view}: has links`, links.length > 0);
      for (const [text, href] of links) {
        await go(page, href);
        const { count } = await selection(page);
        if (view === "ops") {
          check.equal(`ops ${text}`, count, parse(text));
        } else {
          // A name may stand in several rows, one per op and stream.
          const name = (await state(page)).chips[0].values[0];
          check.equal(`kernels ${text}`, count, kernels.filter((row) =>
            row.kernel === name).reduce((n, row) => n + Number(row.count), 0));
        }
      }
    }
    await go(page, "#v=overview", "overview");
    const links = await page.evaluate(() =>
      [...document.querySelectorAll("main a")].map((a) =>
        a.getAttribute("href")));
    for (const href of links) {
      await go(page, href);
      check.true(href, await page.evaluate(() =>
        document.querySelector("main").innerText.length > 40));
    }
  },
};
export default tests;
