// SPDX-License-Identifier: Apache-2.0
//
// A redacted page says that it is one and shows no name of the folder that
// its trace lies in; any other page says what it holds.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";

import { closePages, copied, folder, go, lamina, open, pageOf, traces } from
  "./harness.mjs";

const kSecret = "zaphodb";
const kToken = /path-[0-9a-f]{8}\/file-[0-9a-f]{8}\.json|user-[0-9a-f]{8}/;

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

  "a copied command says what to replace in it": async (check) => {
    const place = join(folder, "home", "command", kSecret);
    mkdirSync(place, { recursive: true });
    const trace = join(place, `${kSecret}.json`);
    const known = `"username":"${kSecret}",`;
    writeFileSync(trace, gunzipSync(readFileSync(traces.train)).toString()
      .replace("{", "{" + known)
      .replaceAll("aten::_fused_adamw_", `adamw of ${kSecret}`));
    const page = await open(pageOf(trace, "--redact"), { hash: "#v=kernels" });
    const copy = () => copied(page, () =>
      page.locator("[data-k=command]").click());
    const says = () => page.locator("footer").textContent();
    // What the reader is told to write for the tokens, in their order.
    const replaced = (command, ...names) => {
      for (const name of names) {
        const token = kToken.exec(command)[0];
        command = command.replaceAll(token, name);
      }
      return command;
    };
    const rows = (command) => execFileSync("bash", ["-c",
      `PATH=${dirname(lamina)}:$PATH; ${command}`],
      { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
      .trim().split("\n").length - 1;

    const whole = await copy();
    const file = kToken.exec(whole)[0];
    check.equal("input", await says(), "Command copied. It does not run as " +
      `it is, this page is redacted: replace ${file} by the path of the ` +
      "trace.");
    check.equal("rows", rows(replaced(whole, trace)), await page.evaluate(() =>
      __lamina.model.table("kernels").rows));

    const op = await page.evaluate(() => {
      const kernels = __lamina.model.table("kernels");
      for (let row = 0; row < kernels.rows; ++row) {
        const name = kernels.str(row, "op");
        if (name.startsWith("adamw of ")) return name;
      }
      return "none";
    });
    check.true("the op is a token: " + op, /^adamw of user-\w{8}$/.test(op));
    await go(page, "#v=kernels&op=" + encodeURIComponent(op), "kernels");
    const part = await copy();
    check.true("file and name", (await says()).endsWith(`replace ${file} by ` +
      `the path of the trace and ${op.slice(9)} by the name that it stands ` +
      "for."));
    check.equal("rows of the op", rows(replaced(part, trace, kSecret)),
                await page.evaluate((name) => {
                  const kernels = __lamina.model.table("kernels");
                  let rows = 0;
                  for (let row = 0; row < kernels.rows; ++row)
                    rows += kernels.str(row, "op") === name;
                  return rows;
                }, op));
    // Names of the page itself need no word.
    const plain = await open(pageOf(trace), { hash: "#v=kernels" });
    await copied(plain, () => plain.locator("[data-k=command]").click());
    check.equal("not redacted", await plain.locator("footer").textContent(),
                "Command copied.");
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
