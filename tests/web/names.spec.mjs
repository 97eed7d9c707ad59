// SPDX-License-Identifier: Apache-2.0
//
// Kernels are shown by short names, those that were mangled too; filters,
// copies and commands keep the whole name, and search finds both.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";

import { copied, folder, go, lamina, ns, open, pageOf, parseCsv, search,
         tablesOf, traces, until } from "./harness.mjs";

const kWhole = "_ZN7ck_tile6kentryILi256ENS_9FmhaFwd32IfEEJEEEvT0_DpT1_";
const kShort = "kentry<256, FmhaFwd32<float>>";

// The attention kernel of a sample under that name.
function mangledTrace() {
  const file = join(folder, "mangled.json");
  writeFileSync(file, gunzipSync(readFileSync(traces.train)).toString()
    .replace(/void flash_fwd_kernel<[^"]*/g, kWhole));
  return file;
}

export default {
  "mangled names are shown short": async (check) => {
    const file = mangledTrace();
    const own = tablesOf(file)("kernels").filter((row) =>
      row.kernel === kWhole);
    const events = own.reduce((sum, row) => sum + Number(row.count), 0);
    const time = own.reduce((sum, row) => sum + ns(row.kernel_time_us), 0);
    check.true("the trace has the kernel", events > 1);
    const page = await open(pageOf(file), { hash: "#v=kernels" });
    const text = (view) => page.evaluate((v) =>
      document.querySelector(".view-" + v).textContent, view);
    const uid = await page.evaluate(async (name) => {
      const { model } = __lamina;
      await model.require(["device", "kernels"]);
      const row = model.table("kernels").rowWhere("kernel", name);
      return model.device.uid[model.device.kernel.indexOf(row + 1)];
    }, kWhole);
    for (const view of ["kernels", "timeline", "modules", "tables"]) {
      await go(page, `#v=${view}&name=${kWhole}&o.tables.name=kernels`, view);
      const shown = await text(view);
      check.true(`${view}: short`, shown.includes(kShort.slice(0, 20)));
      check.true(`${view}: not mangled`, !shown.includes("_ZN7ck_tile"));
      check.equal(`${view}: events of the whole name`, await page.evaluate(() =>
        __lamina.selection()), { count: events, time });
      check.true(`${view}: chip`, (await page.locator(".chip b").innerText())
        .startsWith(kShort));
    }
    await go(page, `#v=timeline&sel=${uid}`, "timeline");
    check.equal("panel", await page.locator("aside h2").innerText(), kShort);
    check.equal("whole name in the panel",
                await page.locator("aside .whole").innerText(), kWhole);
  },

  "search finds both names": async (check) => {
    const page = await open(pageOf(mangledTrace()), { hash: "#v=overview" });
    for (const words of ["kentry<256", "6kentryILi256"]) {
      const hits = await search(page, "name:" + words);
      check.equal(words, hits.slice(0, 1), ["1 kernel"]);
      check.true(`${words}: shown short`, hits[1].startsWith(kShort));
    }
    await page.keyboard.press("Enter");
    await until(page, () => __lamina.state().chips.length === 1);
    check.equal("filters by the whole name", (await page.evaluate(() =>
      __lamina.state().chips))[0].values, [kWhole]);
  },

  "copies and commands keep the whole name": async (check) => {
    const file = mangledTrace();
    const page = await open(pageOf(file), { hash: "#v=kernels" });
    const csv = await copied(page, () =>
      page.locator("[data-k='kernels.csv']").click());
    check.equal("CSV is the engine's", csv, tablesOf(file).text("kernels"));
    for (const filter of [`name=${kWhole}`, "q=kentry%3C256"]) {
      await go(page, "#v=kernels&" + filter, "kernels");
      const selection = await page.evaluate(() => __lamina.selection());
      const command = await copied(page, () =>
        page.locator("[data-k=command]").click());
      const rows = parseCsv(execFileSync("bash", ["-c",
        `PATH=${dirname(lamina)}:$PATH; ${command}`], { cwd: folder,
        encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }));
      check.true(`${filter}: some`, selection.count > 0);
      check.equal(`${filter}: whole names`,
                  [...new Set(rows.map((row) => row.kernel))], [kWhole]);
      check.equal(`${filter}: the same events`, {
        count: rows.reduce((sum, row) => sum + Number(row.count), 0),
        time: rows.reduce((sum, row) => sum + ns(row.kernel_time_us), 0) },
        selection);
    }
  },
};
