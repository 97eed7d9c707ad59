// SPDX-License-Identifier: Apache-2.0
//
//   node run.mjs LAMINA [GROUP...]     runs *.spec.mjs beside this file
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { browserEnded, Check, closePages, done, problems } from "./harness.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const wanted = process.argv.slice(3);
let held = 0;
let failed = 0;

// One run of a test: what did not hold, and whether all of that is a wait that
// took too long or a browser that ended.
async function attempt(name, test) {
  const check = new Check(name);
  problems.length = 0;
  let late = false;
  try {
    await test(check);
  } catch (error) {
    late = (error.name === "TimeoutError" || browserEnded()) && check.failures.length === 0 &&
      problems.length === 0;
    check.failures.push(String(error.stack ?? error).slice(0, 1500));
  }
  check.equal("console, errors, dialogs, requests", problems.slice(0, 5), []);
  await closePages();
  return { check, late };
}

for (const file of readdirSync(here).filter((f) => f.endsWith(".spec.mjs"))
       .sort()) {
  if (wanted.length > 0 && !wanted.includes(file.replace(".spec.mjs", "")))
    continue;
  const { default: tests } = await import(join(here, file));
  for (const [name, test] of Object.entries(tests)) {
    const begin = Date.now();
    let { check, late } = await attempt(name, test);
    if (late) {
      console.log(`  ${name}: timed out once, run again: ` +
                  check.failures[0].split("\n")[0]);
      ({ check } = await attempt(name, test));
    }
    held += check.held;
    failed += check.failures.length;
    console.log(`${check.failures.length > 0 ? "FAILED" : "ok"} ` +
                `${file.replace(".spec.mjs", "")}: ${name} (${check.held}, ` +
                `${((Date.now() - begin) / 1000).toFixed(1)} s)`);
    for (const failure of check.failures.slice(0, 8))
      console.log("  " + failure);
    for (const reason of check.left_out)
      console.log(`left out: ${name}: ${reason}`);
  }
}
await done();
console.log(`${held} held, ${failed} did not`);
process.exit(failed > 0 || held === 0 ? 1 : 0);
