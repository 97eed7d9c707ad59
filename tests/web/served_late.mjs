// SPDX-License-Identifier: Apache-2.0
//
// The page of a trace whose findings follow: it is usable before, says when
// they are here, and has them when it is loaded again.
//   node served_late.mjs LAMINA ADDRESS      ADDRESS: of lamina serve
//                         --late-findings-mb 0 with one trace of many events

import { Check, kWaitMs, launchChromium } from "./harness.mjs";

const [, , , address] = process.argv;
const check = new Check("late");
const browser = await launchChromium();
const { origin, hash } = new URL(address);
const headers = { Authorization: `Bearer ${hash.slice("#token=".length)}`,
                  "Content-Type": "application/json" };
const ask = async (path, options) =>
  (await fetch(origin + "/api/v1/traces" + path, { headers, ...options })).json();
const notes = (page) => page.evaluate(() =>
  __lamina.model.manifest.notes.map((note) => note.id));

try {
  const problems = [];
  const page = await browser.newPage();
  page.setDefaultTimeout(kWaitMs);
  page.on("console", (m) => problems.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => problems.push(`page error: ${e.message}`));
  await page.goto(address);
  const { id } = (await ask("")).traces[0];
  await ask(`/${id}/open`, { method: "POST", body: "{}" });
  let state = "";
  while (state !== "open") {
    ({ state } = await ask(`/${id}`));
    if (state === "failed" || state === "closed")
      throw new Error(`the trace is ${state}`);
    await new Promise((done) => setTimeout(done, 20));
  }
  const early = await (await fetch(`${origin}/api/v1/traces/${id}/page`,
                                   { headers })).text();
  check.true("the page says so", early.includes("findings follow"));
  const ready = () => page.waitForFunction(() =>
    document.documentElement.dataset.ready !== undefined, null, { polling: 30 });
  // However fast the findings are: this is the page before them.
  const first = (route) =>
    route.fulfill({ body: early, contentType: "application/octet-stream" });
  await page.route(`**/api/v1/traces/${id}/page`, first);
  await page.goto(`${origin}/t/${id}`);
  await ready();
  check.true("without findings at first",
             (await notes(page)).includes("findings_later"));
  check.true("usable", (await page.locator("main").innerText()).length > 100);
  await page.waitForFunction(() => document.querySelector("footer").innerText
    .includes("findings are here"), null, { timeout: kWaitMs, polling: 100 });
  await page.unroute(`**/api/v1/traces/${id}/page`, first);
  await page.reload();
  await ready();
  check.true("then with them",
             !(await notes(page)).includes("findings_later"));
  // The same page once more, with what the server may say of its trace.
  await page.route(`**/api/v1/traces/${id}/page`, first);
  let trace;
  await page.route(`**/api/v1/traces/${id}`, (route) =>
    route.fulfill({ json: trace }));
  const when = "load this page again when the trace is open";
  for (const [said, shown] of [
    [{ state: "open", facts: { findings: "here" } },
     "The findings are here: load this page again to see them."],
    [{ state: "open", facts: { findings: "no device" } },
     "There are no findings: no device"],
    [{ state: "open", facts: {} },
     "There are no findings: the trace was opened anew; load this page again"],
    [{ state: "closed", facts: { findings: "coming" } },
     `There are no findings: the trace is closed; ${when}`],
    [{ state: "opening", done: 0, total: 1 },
     `There are no findings: the trace is opening; ${when}`],
    [{ state: "failed", error: "its process was ended", facts: {} },
     `There are no findings: its process was ended; ${when}`]]) {
    trace = said;
    await page.reload();
    await ready();
    await page.waitForFunction(() => document.querySelector("footer").innerText
      .includes("findings"), null, { timeout: kWaitMs, polling: 30 });
    check.equal(`footer of ${JSON.stringify(said)}`,
                await page.locator("footer").innerText(), shown);
  }
  check.equal("problems", problems, []);
} catch (error) {
  check.fail(error);
}
await browser.close();
check.end();
