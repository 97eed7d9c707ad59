// SPDX-License-Identifier: Apache-2.0
//
// A redacted page says that it is one and shows no name of the folder that
// its trace lies in; any other page says what it holds.
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import { closePages, folder, go, open, pageOf, traces } from "./harness.mjs";

const kSecret = "zaphodb";

async function help(page) {
  await page.keyboard.press("?");
  const text = await page.locator("dialog[open]").innerText();
  await page.keyboard.press("Escape");
  return text;
}

const tests = {
  "says so": async (check) => {
    const place = join(folder, "home", kSecret);
    mkdirSync(place, { recursive: true });
    const trace = join(place, `${kSecret}.json.gz`);
    copyFileSync(traces.train, trace);
    const page = await open(pageOf(trace, "--redact"), { hash: "#v=health" });
    const mark = page.locator("header .redacted");
    check.equal("header", await mark.innerText(), "redacted");
    const says = /^This page is redacted: \d+ paths?, /;
    check.true("header title", says.test(await mark.getAttribute("title")));
    check.true("health",
               says.test(await page.locator("#privacy").innerText()));
    check.true("keys", /This page is redacted: /.test(await help(page)));
    check.true("name of the file", /^file-[0-9a-f]{8}\.json\.gz$/.test(
      await page.locator("header .file").innerText()));
    const views = await page.evaluate(() =>
      [...document.querySelectorAll("nav a")]
        .map((a) => new URL(a.href).hash.match(/v=([a-z]+)/)[1]));
    for (const view of views) {
      await go(page, "#v=" + view, view);
      check.true(`nothing shown in ${view}`, await page.evaluate((secret) =>
        !document.documentElement.innerHTML.includes(secret) &&
        !document.title.includes(secret), kSecret));
    }
    await closePages();
  },

  "other pages say what they hold": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=health" });
    check.equal("no mark", await page.locator("header .redacted").count(), 0);
    const says = "This page holds names, shapes, paths and hosts of the trace";
    check.true("health", (await page.locator("#privacy").innerText())
      .startsWith(says));
    check.true("keys", (await help(page)).includes(says));
    await closePages();
  },
};
export default tests;
