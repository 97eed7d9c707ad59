// SPDX-License-Identifier: Apache-2.0
//
// The page of a trace that holds few of its events, served: what it fetches
// makes it say what the file with all events says.
//   node served_tiles.mjs LAMINA ADDRESS TRACE     ADDRESS: of lamina serve
//                                          --page-events 40, with TRACE alone

import { Check, kWaitMs, launchChromium, written } from "./harness.mjs";

const [, , , address, trace] = process.argv;
const check = new Check("tiles");
const browser = await launchChromium();

const problems = [];
async function newPage() {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  page.setDefaultTimeout(kWaitMs);
  page.on("console", (m) => problems.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => problems.push(`page error: ${e.message}`));
  return page;
}
const ready = (page, view) => page.waitForFunction((name) => {
  const now = document.documentElement.dataset.ready;
  return name ? now === name : now !== undefined;
}, view, { timeout: kWaitMs, polling: 30 });
// What was asked has come.
const here = (page) => page.waitForFunction(() => {
  const asked = [...document.querySelectorAll("[data-live]")];
  return asked.length === 2 && asked.every((e) => e.dataset.live === "here");
}, null, { timeout: kWaitMs, polling: 30 });
async function go(page, hash, view) {
  await page.evaluate((h) => {
    delete document.documentElement.dataset.ready;
    location.hash = h === location.hash ? h + "&" : h;
  }, hash);
  await ready(page, view).catch(async (e) => { throw new Error(
    `${page.url()} ${await page.evaluate(() => document.documentElement
      .dataset.ready + " " + document.body.innerText.slice(0, 300))} ${e}`); });
}
const table = (page) => page.locator("main .tablebox").last().innerText();
const words = (page) => page.locator("#tracks + .muted").innerText();
const note = (page) => page.locator("main").innerText().then((text) =>
  /[^\n]*(?:[Tt]ogether)[^\n]*/.exec(text)?.[0]);

const kColumns = [["kernel", "kernels"], ["op", "op_efficiency"],
  ["module", "modules"], ["layer", "layers"], ["pass", "passes"],
  ["step", "steps"]];
const sums = (page) => page.evaluate(async (columns) => {
  const { model } = __lamina;
  await model.require(columns.map(([, name]) => name));
  return { all: __lamina.selection(), ...Object.fromEntries(columns.map(
    ([column, name]) => {
      const { time, count } = __lamina.sums(column,
        (model.table(name)?.rows ?? 0) + 1);
      return [column, [[...time], [...count]]];
    })) };
}, kColumns);

async function all() {
  const page = await newPage();
  const full = await newPage();
  await full.goto("file://" + written("report", trace, "--format", "html"));
  await ready(full);
  await page.goto(address);
  await ready(page, "library");
  const row = page.locator("tbody tr").first();
  await row.getByRole("button", { name: "Open" }).click();
  await page.waitForFunction(() => document.querySelector("tbody tr")
    ?.dataset.state === "open", null, { timeout: kWaitMs, polling: 50 });
  await row.locator("a").first().click();
  await page.waitForURL("**/t/*");
  await ready(page);

  for (const one of [page, full]) await go(one, "#v=timeline", "timeline");
  await here(page);
  const events = await full.evaluate(() => {
    const { device } = __lamina.model;
    return Array.from({ length: device.count }, (_, i) => ({ start:
      device.start[i], dur: device.dur[i], uid: device.uid[i] }));
  });
  const held = await page.evaluate(() => [...__lamina.model.device.uid]
    .slice(0, __lamina.model.device.count));
  check.true(`holds ${held.length} of ${events.length}`,
             held.length > 0 && held.length < events.length / 2);
  check.true("the note names the server", (await page.evaluate(() =>
    __lamina.model.manifest.notes.map((n) => n.text).join())).includes(
      "ask lamina serve"));

  // No room for more: the next answer makes the page forget what came before,
  // and it still draws the right events.
  await page.evaluate(() => {
    const { rowOf, most } = __lamina.model.device.fetched;
    rowOf.clear();
    for (let i = 0; i < most - 7; ++i)
      rowOf.set(-1 - i, __lamina.model.device.rows + i);
  });

  // Windows: the same longest events, with the same sums.
  const first = events[0].start;
  const last = Math.max(...events.map((e) => e.start + e.dur));
  for (const [from, to] of [[first, last], [first, first + 2e5],
      [first + (last - first) / 3, first + (last - first) / 2],
      [last - 3e5, last - 1e5], [first + 1e6 + 1, first + 1e6 + 4e4]]) {
    const hash = `#v=timeline&z=${Math.round(from)}..${Math.round(to)}`;
    for (const one of [page, full]) await go(one, hash, "timeline");
    await here(page);
    check.equal(`${hash}: table`, await table(page), await table(full));
    check.equal(`${hash}: sums`, await note(page), await note(full));
    check.equal(`${hash}: drawn`, await words(page), await words(full));
  }
  check.true("what came before was forgotten", await page.evaluate(() =>
    ![...__lamina.model.device.fetched.rowOf.keys()].some((uid) => uid < 0)));

  // Events that the page does not hold.
  const missing = events.filter((e) => !held.includes(e.uid) && e.dur > 0);
  const entries = (one) => one.locator("aside dl").evaluate((list) =>
    Object.fromEntries([...list.querySelectorAll("dt")].map((dt) =>
      [dt.innerText, dt.nextElementSibling.innerText])));
  for (const { uid } of [missing[0], missing[missing.length >> 1],
                         missing.at(-1)]) {
    const hash = `#v=timeline&sel=${uid}`;
    for (const one of [page, full]) await go(one, hash, "timeline");
    await here(page);
    const [own, of] = [await entries(page), await entries(full)];
    for (const name of ["start", "end", "length", "track", "family", "op",
                        "shapes", "types", "module", "layer", "step", "event"])
      check.equal(`event ${uid}: ${name}`, own[name], of[name]);
    check.equal(`event ${uid}: name`, await page.locator("aside h2").innerText(),
                await full.locator("aside h2").innerText());
    // It is drawn where the file draws it, and can be pointed at.
    const [at, there] = [await page.evaluate((u) => [__lamina.trackLeft(u),
      __lamina.trackTop(u)], uid), await full.evaluate((u) =>
      [__lamina.trackLeft(u), __lamina.trackTop(u)], uid)];
    check.equal(`event ${uid}: place`, at, there);
    const box = await page.locator("[data-k='timeline.canvas']").boundingBox();
    await page.mouse.move(box.x + at[0] + 1, box.y + at[1] + 3);
    const tip = await page.locator(".tip").innerText();
    check.true(`event ${uid}: under the pointer: ${tip}`,
               tip.startsWith((await page.locator("aside h2").innerText())
                 .slice(0, 20)));
  }

  // Sums under filters that only single events can answer, alone and together.
  const kernel = await full.evaluate(async () => {
    await __lamina.model.require(["kernels"]);
    return __lamina.model.table("kernels").str(0, "family");
  });
  const middle = Math.round((first + last) / 2);
  for (const filter of [`t=${first}..${middle}`, "dur=%3E20000",
      `uid=${missing[0].uid},${missing[1].uid}`, `t=${middle}..${last}&cat=${
      encodeURIComponent(kernel)}`, `not.t=${first + 5}..${middle}`,
      `t=${first}..${first + 1e5},${middle}..${middle + 1e5}&dur=%3C9000`]) {
    const hash = `#v=kernels&${filter}`;
    for (const one of [page, full]) await go(one, hash, "kernels");
    check.equal(`${filter}: sums`, await sums(page), await sums(full));
    check.equal(`${filter}: says`, await page.locator("#matching").innerText(),
                await full.locator("#matching").innerText());
    check.equal(`${filter}: no excuse`, await page.locator("#singles").count(),
                0);
  }
  // A closed trace: the page says so and stays as it is.
  await page.evaluate(async () => {
    const trace = JSON.parse(document.getElementById("live").textContent).trace;
    await fetch(trace + "/close", { method: "POST", body: "{}", headers: {
      "Content-Type": "application/json",
      Authorization: `Bearer ${sessionStorage.getItem("lamina-token")}` } });
  });
  await go(page, `#v=kernels&t=${first}..${first + 12345}`, "kernels");
  check.true("a closed trace is told", (await page.locator("footer")
    .innerText()).includes("not open"));
  check.equal("and what is missing", await page.locator("#singles").count(), 1);
  check.equal("problems", problems.filter((text) => !/status of 409/.test(text)),
              []);
}

try {
  await all();
} catch (error) {
  check.fail(error);
  check.failures.push(...problems);
}
await browser.close();
check.end();
