// SPDX-License-Identifier: Apache-2.0
//
// Names of a trace are hostile: in every field that can carry text, in every
// view, nothing runs, no element comes from them, nothing leaves the page.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { folder, go, open, pageOf, run, search } from "./harness.mjs";

const kHostile = [
  "</script><script>globalThis.pwned=1</script>",
  "<!--<script>",
  "<img src=x onerror=globalThis.pwned=1>",
  "<svg onload=globalThis.pwned=1>",
  "\"'`><b id=owned>",
  "javascript:globalThis.pwned=1",
  "{{title}} {{data}} {{summary}}",
  "nul\u0000byte \u0007\u001b[31m",
  "\ud800 lone \udfff",
  "\u202egnirts\u202c \u2066x\u2069 \u200f",
  "=cmd|' /C calc'!A0",
  "a|b|c \\| `code` **bold**",
  "\u{1f600}\u{1f469}\u200d\u{1f469}\u200d\u{1f467}",
  "constructor", "__proto__", "toString",
  "x".repeat(200_000),
];

function hostileTrace() {
  const events = [];
  let id = 0;
  for (const [i, text] of kHostile.entries()) {
    const t = i * 1000;
    const on = (cat, name, ts, dur, args = {}) => events.push({ ph: "X", cat,
      name, pid: text.slice(0, 300), tid: text.slice(0, 300), ts, dur, args });
    events.push({ ph: "M", name: "thread_name", pid: text.slice(0, 300),
                  tid: text.slice(0, 300), args: { name: text } });
    on("user_annotation", text, t, 900);
    on("python_function", "nn.Module: " + text, t + 1, 800,
       { "Python id": ++id, "Python module id": i });
    for (let k = 0; k < 3; ++k) {
      const correlation = ++id;
      on("cpu_op", text, t + 10 + k * 50, 40, { "External id": id,
        "Input Dims": [[text, 2], [3]], "Input type": [text, "float"],
        "Concrete Inputs": [text] });
      on("cuda_runtime", text, t + 12 + k * 50, 5, { correlation });
      events.push({ ph: "X", cat: "kernel", name: text, pid: 0, tid: i + 1,
        ts: t + 100 + k * 60, dur: 30,
        args: { correlation, device: 0, stream: i + 1, text } });
    }
  }
  return { deviceProperties: [{ name: kHostile[0] }], traceName: kHostile[2],
           distributedInfo: { backend: kHostile[1] }, traceEvents: events };
}

// Scripts and elements that a clean page does not have.
const strangers = (page) => page.evaluate(() => ({
  ran: globalThis.pwned !== undefined,
  owned: document.getElementById("owned") !== null,
  scripts: document.querySelectorAll("script:not([type])").length,
  images: document.querySelectorAll("img, iframe, object, embed").length,
  handlers: [...document.querySelectorAll("*")].filter((e) =>
    [...e.attributes].some((a) => /^on/i.test(a.name) ||
      /href|src|action|data$/i.test(a.name) &&
      !/^#/.test(a.value) && a.value !== "")).length,
  direction: /[\u202a-\u202e\u2066-\u2069\u0000-\u0008]/
    .test(document.body.innerText),
  sideways: document.documentElement.scrollWidth > innerWidth + 1,
}));
const kClean = { ran: false, owned: false, scripts: 1, images: 0, handlers: 0,
                 direction: false, sideways: false };

export default {
  "hostile names in every field": async (check) => {
    const file = join(folder, "<img src=x onerror=pwned=1>'&.json");
    // JSON.stringify writes lone surrogates as escapes.
    writeFileSync(file, JSON.stringify(hostileTrace()));
    const html = pageOf(file);
    const page = await open(html);
    const views = await page.evaluate(() =>
      [...document.querySelectorAll("nav a")].map((a) =>
        new URL(a.href).hash.match(/v=([a-z]+)/)[1]));
    check.true("views", views.length >= 6);
    const uid = await page.evaluate(async () => {
      await __lamina.model.require(["device"]);
      return __lamina.model.device.uid[5];
    });
    for (const view of views) {
      await go(page, `#v=${view}&sel=${uid}`, view);
      check.equal(view, await strangers(page), kClean);
    }
    const tables = await page.evaluate(() =>
      __lamina.model.manifest.tables.filter((t) => t.rows > 0)
        .map((t) => t.name));
    for (const table of tables) {
      await go(page, `#v=tables&o.tables.name=${table}&o.tables.all=1`,
               "tables");
      check.equal(`table ${table}`, await strangers(page), kClean);
    }
    for (const text of kHostile.slice(0, -1)) {
      await go(page, `#v=kernels&name=${encodeURIComponent(text
        .replace(/[\ud800-\udfff]/g, "\ufffd"))}&q=` +
        encodeURIComponent(text.replace(/[\ud800-\udfff]/g, "\ufffd")),
        "kernels");
      check.equal(`filter ${text.slice(0, 20)}`, await strangers(page),
                  kClean);
    }
    await search(page, "script");
    check.equal("search", await strangers(page), kClean);
    check.true("title", !(await page.title()).includes("{{"));
  },

  "hostile names in pages of several traces": async (check) => {
    const files = [0, 1].map((rank) => {
      const trace = hostileTrace();
      trace.distributedInfo = { rank, world_size: 2 };
      for (const [i, text] of kHostile.entries()) {
        trace.traceEvents.push({ ph: "X", cat: "kernel", pid: 0, tid: 99,
          name: "ncclDevKernel_AllReduce_Sum " + text, ts: i * 1000 + 500,
          dur: 50 + 100 * rank, args: { device: 0, stream: 99,
            "Collective name": text, "Process Group Name": text,
            "Process Group Ranks": "[0, 1]", "Group size": 2, Seq: i,
            dtype: text, "In msg nelems": 8, "Out msg nelems": 8 } });
      }
      const file = join(folder, `hostile rank${rank}.json`);
      writeFileSync(file, JSON.stringify(trace));
      return file;
    });
    const hashes = {
      diff: ["#v=diff", "#v=timeline&of=diff_ops.0,diff_kernels.2"],
      ranks: ["#v=ranks&o.ranks.col=3", "#v=timeline&of=collectives.2"],
    };
    for (const command of ["diff", "ranks"]) {
      const html = join(folder, `hostile_${command}.html`);
      run(command, ...files, "--format", "html", "-o", html);
      const page = await open(html);
      const uid = await page.evaluate(async () => {
        await __lamina.model.require(["device"]);
        return __lamina.model.device.uid[5];
      });
      for (const hash of [...hashes[command],
          "#v=tables&o.tables.name=kernels&o.tables.all=1"]) {
        await go(page, `${hash}&sel=${uid}`, /v=([a-z]+)/.exec(hash)[1]);
        check.equal(`${command} ${hash}`, await strangers(page), kClean);
      }
    }
  },

  "the policy refuses what is added": async (check) => {
    const page = await open(pageOf(join(folder,
      "<img src=x onerror=pwned=1>'&.json")), { mayFail: true });
    const result = await page.evaluate(async () => {
      const script = document.createElement("script");
      script.textContent = "globalThis.added = 1";
      document.body.append(script);
      const fetched = await fetch("http://127.0.0.1:9/").then(() => true,
                                                            () => false);
      const image = await new Promise((done) => {
        const element = new Image();
        element.onload = () => done(true);
        element.onerror = () => done(false);
        element.src = "http://127.0.0.1:9/x.png";
      });
      const socket = await new Promise((done) => {
        try {
          const line = new WebSocket("ws://127.0.0.1:9/");
          line.onopen = () => done(true);
          line.onerror = () => done(false);
        } catch {
          done(false);
        }
      });
      return { added: globalThis.added ?? 0, fetched, image, socket };
    });
    check.equal("refused", result,
                { added: 0, fetched: false, image: false, socket: false });
  },

  "broken addresses are dropped": async (check) => {
    const page = await open(pageOf(join(folder,
      "<img src=x onerror=pwned=1>'&.json")));
    const parts = ["v=", "v=nothing", "z=9..1", "z=1e99..2", "sel=<b>", "%",
      "%E0%A4%A", "fam=%", "name=", "o.x.y.z=1", "theme=pink", "t=a..b",
      "uid=" + "9".repeat(400), "layer=-1", "q=/((a+)+)+$/", "=1", "&&&",
      "dur=>x", "row=__proto__", "mod=constructor"];
    let seed = 7;
    const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    for (let i = 0; i < 150; ++i) {
      const some = Array.from({ length: 1 + random(4) },
                              () => parts[random(parts.length)]);
      if (random(3) === 0) {
        some.push(String.fromCharCode(...Array.from({ length: 12 },
          () => 33 + random(90))));
      }
      await go(page, "#v=ops&" + some.join("&") + "&n=" + i);
      check.true(some.join("&"), await page.evaluate(() =>
        document.querySelector("main").children.length > 0 &&
        document.documentElement.dataset.ready !== "damaged"));
    }
    check.equal("nothing ran", (await strangers(page)).ran, false);
  },
};
