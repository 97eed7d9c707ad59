// SPDX-License-Identifier: Apache-2.0
//
// lamina serve in a browser: the list, opening, the page of a trace beside the
// file of lamina report, comparing, SQL, what pages of others may not do.
//   node served.mjs LAMINA ADDRESS FOLDER      FOLDER: traces, as served
//
// Longer than most: one walk through one server, as a person takes it.
import { createServer } from "node:http";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { Check, fromPackages, kWaitMs, launchChromium, written }
  from "./harness.mjs";
import { picture } from "./pictures.mjs";

const [, , , address, folder] = process.argv;
const check = new Check("serve");
const origin = new URL(address).origin;
const { port } = new URL(address);

const browser = await launchChromium(["--host-resolver-rules=" +
  "MAP evil.test 127.0.0.1, MAP other.test 127.0.0.1"]);

async function newPage(problems) {
  const context = await browser.newContext({ viewport: { width: 1280,
                                                         height: 860 } });
  context.setDefaultTimeout(kWaitMs);
  const page = await context.newPage();
  page.on("console", (m) => problems.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => problems.push(`page error: ${e.message}`));
  page.on("dialog", (d) => { problems.push(`dialog: ${d.message()}`);
                             void d.dismiss(); });
  page.on("request", (r) => {
    if (!r.url().startsWith(origin + "/") && !/^(blob|data|file):/.test(r.url()))
      problems.push(`request: ${r.url().slice(0, 200)}`);
    if (/token=/.test(r.url())) problems.push(`token sent: ${r.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (e) =>
      console.error("policy: " + e.violatedDirective + " " + e.blockedURI));
  });
  return page;
}
async function ready(page, what) {
  await page.waitForFunction((name) => {
    const now = document.documentElement.dataset.ready;
    return name ? now === name : now !== undefined;
  }, what, { timeout: kWaitMs, polling: 30 });
}
const row = (page, name) => page.locator(`tr[data-name=${JSON.stringify(name)}]`);
async function inState(page, name, state) {
  await page.waitForFunction(([n, s]) => document.querySelector(
    `tr[data-name=${JSON.stringify(n)}]`)?.dataset.state === s,
    [name, state], { timeout: kWaitMs, polling: 50 });
}
async function openTrace(page, name) {
  await row(page, name).getByRole("button", { name: "Open" }).click();
  await inState(page, name, "open");
}
// axe-core on what is shown, in both themes; see axe.spec.mjs.
const axe = readFileSync(fromPackages("axe-core/axe.min.js"), "utf8");
async function access(page, what) {
  await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    check.equal(`${what} ${colorScheme}: axe`, await page.evaluate(async () => {
      const { violations } = await axe.run(document, { runOnly: { type: "tag",
        values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a",
                 "wcag22aa"] }, resultTypes: ["violations"] });
      return violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3)
        .map((node) => `${node.target}: ${node.failureSummary}`)]);
    }), []);
  }
  await page.emulateMedia({ colorScheme: "light" });
}
// All texts of a view, as a reader gets them.
const texts = (page) => page.evaluate(() =>
  document.getElementById("app").innerText.replace(/Ready in \d+ ms/, ""));

async function library() {
  const problems = [];
  const page = await newPage(problems);
  await page.goto(address);
  await ready(page, "library");
  check.equal("the token left the address", page.url(), origin + "/");
  const names = await page.locator("tbody tr").evaluateAll((rows) =>
    rows.map((one) => one.dataset.name));
  check.true("traces are listed", names.includes("samples/train_step.json.gz"));
  await page.getByLabel("Find a trace").fill("ranks rank1");
  check.equal("search", await page.locator("tbody tr").evaluateAll((rows) =>
    rows.map((one) => one.dataset.name)), ["samples/ranks/rank1.json.gz"]);
  await page.getByLabel("Find a trace").fill("");
  await openTrace(page, "samples/train_step.json.gz");
  const cells = await row(page, "samples/train_step.json.gz").innerText();
  for (const text of ["24.39 KiB", "kineto", "NVIDIA H100 80GB HBM3", "19.05 ms",
                      "98.0 %", "The GPU computes 98 %"])
    check.true(`the row says ${text}: ${cells}`, cells.includes(text));
  await openTrace(page, "samples/serve.json.gz");
  // While it is read the row shows how far that is, and can end it.
  const large = "samples/large.json";
  const shown = page.waitForFunction((name) => {
    const one = document.querySelector(`tr[data-name="${name}"]`);
    return one.querySelector("progress") && one.innerText.includes("Cancel");
  }, large, { timeout: kWaitMs, polling: 10 });
  await row(page, large).getByRole("button", { name: "Open" }).click();
  await shown;
  await row(page, large).getByRole("button", { name: "Cancel" }).click();
  await inState(page, large, "closed");
  await openTrace(page, large);
  await page.locator("[data-k=sort-size]").click();
  const sizes = await page.locator("tbody tr td.c-size").allInnerTexts();
  const bytes = sizes.filter((text) => text !== "").map((text) => parseFloat(text) *
    1024 ** ["B", "KiB", "MiB"].indexOf(text.replace(/[^A-Za-z]/g, "")));
  check.true(`sorted by size: ${sizes}`, bytes.length > 5 && bytes.every(
    (one, i) => one > 0 && (i === 0 || bytes[i - 1] >= one)));
  // Two of them.
  await page.getByLabel("Choose samples/ranks/rank0.json.gz").check();
  await page.getByLabel("Choose samples/ranks/rank2.json.gz").check();
  await page.locator("[data-k=compare]").click();
  const both = "samples/ranks/rank0.json.gz \u2192 samples/ranks/rank2.json.gz";
  await inState(page, both, "open");
  await page.getByLabel("Find a trace").fill("json.gz");
  await picture(page, "serve-library");
  await access(page, "library");
  // A link in a new tab: those that are open tell it the token.
  const tab = await page.context().newPage();
  await tab.goto(origin + "/");
  await ready(tab, "library");
  check.true("a new tab is let in", await tab.locator("tbody tr").count() > 0);
  await tab.close();
  // Another browser knows no tab that has it.
  const stranger = await page.context().browser().newContext();
  const other = await stranger.newPage();
  await other.goto(origin + "/");
  await ready(other, "refused");
  check.true("says how to get in", (await other.locator("main").innerText())
    .includes("the address that lamina serve printed"));
  await stranger.close();
  check.equal("library: problems", problems, []);
  return { page, problems };
}

// The page of a trace is that of lamina report, view by view.
async function sameTexts(page, name, file) {
  await page.goto(origin + "/");
  await ready(page, "library");
  await row(page, name).getByRole("link", { name }).click();
  await page.waitForURL(/\/[tm]\/[0-9a-f]{24}/);
  await ready(page);
  const problems = [];
  const other = await newPage(problems);
  await other.goto("file://" + file);
  await ready(other);
  const hashes = await other.locator("nav a").evaluateAll((links) =>
    links.map((one) => one.getAttribute("href")));
  check.true(`${name}: some views`, hashes.length > 1);
  check.equal(`${name}: title`, await page.title(), await other.title());
  // Also under a filter, with one event of the timeline in sight.
  const kernels = hashes.some((hash) => /v=kernels\b/.test(hash));
  const [family, uid, at] = !kernels ? [] : await other.evaluate(async () => {
    const { model } = __lamina;
    await model.require(["device", "kernels"]);
    const { device } = model;
    const i = device.count >> 1;
    return [model.table("kernels").str(0, "family"), device.uid[i],
            device.start[i]];
  });
  if (family !== undefined) {
    const chip = "&cat=" + encodeURIComponent(family);
    hashes.push(...hashes.filter((h) => /v=/.test(h)).map((h) => h + chip),
                `#v=timeline&z=${at - 500}..${at + 500}&sel=${uid}`,
                `#v=kernels${chip}&dur=%3E20000`);
  }
  for (const hash of hashes) {
    const seen = [];
    for (const one of [page, other]) {
      await one.evaluate((h) => {
        if (location.hash === h) return;
        delete document.documentElement.dataset.ready;
        location.hash = h;
      }, hash);
      // By its name: an earlier view may end its drawing meanwhile.
      await ready(one, /v=(\w+)/.exec(hash)?.[1]);
      seen.push(await texts(one));
    }
    check.true(`${name} ${hash}: has texts`, seen[1].length > 100);
    check.equal(`${name} ${hash}: the same texts`, seen[0], seen[1]);
  }
  await page.reload();
  await ready(page);
  check.true(`${name}: after a reload`, (await texts(page)).length > 100);
  check.equal(`${name}: problems of the file`, problems, []);
  await other.context().close();
}

// Back and forward between the list, a trace and its views.
async function history({ page }) {
  await page.goto(origin + "/");
  await ready(page, "library");
  await row(page, "samples/serve.json.gz").getByRole("link", {
    name: "samples/serve.json.gz" }).click();
  await page.waitForURL("**/t/*");
  await ready(page);
  const seen = [await texts(page)];
  const link = page.locator("nav a").nth(2);
  await link.click();
  await page.waitForFunction((h) => location.hash === h,
                             await link.getAttribute("href"));
  await ready(page);
  seen.push(await texts(page));
  check.true("another view", seen[0] !== seen[1]);
  const holds = (text) => page.waitForFunction((wanted) =>
    document.getElementById("app")?.innerText.replace(/Ready in \d+ ms/, "") ===
      wanted, text, { timeout: kWaitMs, polling: 50 });
  await page.goBack();
  await holds(seen[0]);
  await page.goBack();
  await page.waitForURL(origin + "/");
  await ready(page, "library");
  check.true("back in the list", await row(page, "samples/serve.json.gz")
    .count() === 1);
  await page.goForward();
  await page.waitForURL("**/t/*");
  await holds(seen[0]);
  await page.goForward();
  await holds(seen[1]);
}

async function sql({ page }) {
  await page.goto(origin + "/");
  await ready(page, "library");
  await row(page, "samples/serve.json.gz").getByRole("link", { name: "SQL" })
    .click();
  await ready(page, "sql");
  const run = async (text) => {
    await page.getByLabel("Query").fill(text);
    await page.locator("[data-k=run]").click();
    await page.waitForFunction(() =>
      document.documentElement.dataset.ready === "sql" &&
      !document.querySelector("[role=status]").innerText.includes("running"));
  };
  await run("-- by kernel\nSELECT name, sum(dur_ns) AS ns FROM kernel " +
            "GROUP BY name ORDER BY ns DESC LIMIT 10");
  check.equal("ten rows", await page.locator("section tbody tr").count(), 10);
  await page.locator("[data-k=chart]").click();
  check.equal("ten bars", await page.locator(".bars rect").count(), 10);
  await picture(page, "serve-sql");
  await access(page, "sql");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.locator("[data-k=csv]").click();
  await page.waitForFunction(() =>
    document.querySelector("[role=status]").innerText.includes("copied"));
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  check.true("CSV", copied.startsWith("name,ns\n") &&
             copied.split("\n").length === 12);
  await page.locator("[data-k=save]").click();
  await page.reload();
  await ready(page, "sql");
  await page.getByLabel("Saved queries").selectOption("by kernel");
  check.true("saved queries stay", (await page.getByLabel("Query").inputValue())
    .startsWith("-- by kernel"));
  await run("SELECT nope");
  check.true("errors are told", (await page.locator("[role=status]")
    .innerText()).includes("nope"));
  await run("SELECT '<img src=x onerror=alert(1)>' AS \"<b>x\", '\u202e' AS y");
  check.equal("texts are texts", await page.locator("section tbody td").first()
    .innerText(), "<img src=x onerror=alert(1)>");
  check.equal("no element of a text", await page.locator("section img").count(),
              0);
}

async function hostile({ page }) {
  const list = readdirSync(join(folder, "hostile")).filter((n) =>
    n.endsWith(".json"));
  check.true("hostile traces", list.length > 0);
  await page.goto(origin + "/");
  await ready(page, "library");
  const rows = page.locator("tbody tr", { hasText: "hostile/" });
  check.equal("hostile rows", await rows.count(), list.length);
  await rows.first().getByRole("button", { name: "Open" }).click();
  await rows.first().locator("a").first().waitFor();
  check.equal("no element of a name", await page.locator("tbody img, tbody b")
    .count(), 0);
  await rows.first().locator("a").first().click();
  await page.waitForURL("**/t/*");
  await ready(page);
  const hashes = await page.locator("nav a").evaluateAll((links) =>
    links.map((one) => one.getAttribute("href")));
  for (const hash of hashes) {
    await page.evaluate((h) => {
      if (location.hash === h) return;
      delete document.documentElement.dataset.ready;
      location.hash = h;
    }, hash);
    await ready(page);
    check.equal(`hostile ${hash}`, await page.locator("#app img, #app script")
      .count(), 0);
  }
}

// What a page of another name on this machine, and of another port, can do.
async function others() {
  // A name that leads to the server: its Host is refused.
  const rebound = await newPage([]);
  const answer = await rebound.goto(`http://evil.test:${port}/`);
  check.equal("a rebound name", answer.status(), 421);
  await rebound.context().close();
  const evil = createServer((_, to) => {
    to.setHeader("Content-Type", "text/html");
    to.end("<body>other</body>");
  });
  await new Promise((done) => { evil.listen(0, "127.0.0.1", done); });
  for (const host of ["other.test", "127.0.0.1"]) {
    const page = await newPage([]);
    await page.goto(`http://${host}:${evil.address().port}/`);
    const got = await page.evaluate(async (target) => {
      const out = {};
      const read = async (name, options) => {
        try {
          const response = await fetch(target + "api/v1/info", options);
          out[name] = `${response.type} ${response.status}`;
        } catch { out[name] = "refused"; }
      };
      await read("fetch", {});
      await read("with token", { headers: { Authorization: "Bearer x" } });
      await read("no-cors", { mode: "no-cors", method: "POST", body: "{}" });
      out.image = await new Promise((done) => {
        const image = new Image();
        image.onload = () => done("read");
        image.onerror = () => done("refused");
        image.src = target;
      });
      out.script = await new Promise((done) => {
        const script = document.createElement("script");
        script.onload = () => done("read");
        script.onerror = () => done("refused");
        script.src = target;
        document.body.append(script);
      });
      out.frame = await new Promise((done) => {
        const frame = document.createElement("iframe");
        frame.onload = () => {
          try { done(frame.contentDocument ? "read" : "refused"); }
          catch { done("refused"); }
        };
        frame.src = target;
        document.body.append(frame);
      });
      for (const [method, path] of [["get", ""], ["get", "api/v1/info"],
                                    ["post", "api/v1/compare"],
                                    ["post", "mcp"]]) {
        out[`form ${method} ${path}`] = await new Promise((done) => {
          const frame = document.createElement("iframe");
          frame.name = "answer" + document.forms.length;
          document.body.append(frame);
          const form = document.createElement("form");
          Object.assign(form, { method, action: target + path,
            enctype: "text/plain", target: frame.name });
          form.innerHTML = "<input name='{&quot;a&quot;:&quot;' value='&quot;}'>";
          document.body.append(form);
          frame.onload = () => {
            try { done(frame.contentDocument ? "read" : "refused"); }
            catch { done("refused"); }
          };
          form.submit();
        });
      }
      out.events = await new Promise((done) => {
        const events = new EventSource(target + "api/v1/info");
        events.onopen = () => done("read");
        events.onerror = () => { events.close(); done("refused"); };
      });
      return out;
    }, origin + "/");
    for (const [way, said] of Object.entries(got)) {
      check.true(`${host} by ${way}: ${said}`,
                 said === "refused" || said === "opaque 0");
    }
    await page.context().close();
  }
  evil.close();
}

try {
  const opened = await library();
  for (const name of ["train_step.json.gz", "serve.json.gz", "moe.json.gz",
                      "graphs/replay.json.gz", "jax.xplane.pb"]) {
    await opened.page.goto(origin + "/");
    await ready(opened.page, "library");
    if (await row(opened.page, `samples/${name}`).getAttribute("data-state") !==
        "open")
      await openTrace(opened.page, `samples/${name}`);
    await sameTexts(opened.page, `samples/${name}`, written("report",
      join(folder, name), "--format", "html"));
  }
  await history(opened);
  await sameTexts(opened.page,
    "samples/ranks/rank0.json.gz \u2192 samples/ranks/rank2.json.gz",
    written("diff", join(folder, "ranks/rank0.json.gz"),
            join(folder, "ranks/rank2.json.gz"), "--format", "html"));
  await opened.page.goto(origin + "/");
  await ready(opened.page, "library");
  await openTrace(opened.page, "samples/train.pickle");
  await sameTexts(opened.page, "samples/train.pickle", written("report",
    join(folder, "train.pickle"), "--format", "html"));
  await sql(opened);
  await hostile(opened);
  // Each is refused with a line on the console, which is not that of a fault.
  check.equal("console, errors, dialogs, requests", opened.problems.filter(
    (text) => !/status of 40[0-9]/.test(text)), []);
  await others();
} catch (error) {
  check.fail(error);
}
await browser.close();
check.end();
