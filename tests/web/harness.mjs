// SPDX-License-Identifier: Apache-2.0
//
// Opens pages as users get them: a file made by the program under test, from
// file://, in a headless Chromium. After every test: no console output, no
// page error, no dialog, no violation of the policy, and no request but the
// file itself.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

export const lamina = resolve(process.argv[2]);
export const root = resolve(import.meta.dirname ??
  dirname(new URL(import.meta.url).pathname), "../..");
const require = createRequire(join(dirname(lamina), "web", "package.json"));
const { chromium, firefox } = require("playwright-core");
// A file of an installed package.
export const fromPackages = (name) => require.resolve(name);

export const folder = mkdtempSync(join(tmpdir(), "lamina_page_"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export const shared = process.env.LAMINA_SHARED ?? join(root, "..", "shared");
export const hasShared = existsSync(join(shared, "traces"));
export const traces = {
  train: join(root, "samples/train_step.json.gz"),
  serve: join(root, "samples/serve.json.gz"),
  moe: join(root, "samples/moe.json.gz"),
  ...hasShared ? {
    owlv2: join(shared, "traces/h100-owlv2.json.gz"),
    sglang: join(shared, "traces/sglang-qwen3-8b-prefilldecode.json.gz"),
    qwen: join(shared, "traces/mi300-qwen1.5-0.5b.json.gz"),
  } : {},
};

export function run(...args) {
  return execFileSync(lamina, args, { encoding: "utf8",
                                      maxBuffer: 1 << 30 });
}

const made = new Map();
// The page that a command writes, made once.
export function written(...args) {
  const key = args.join(" ");
  if (!made.has(key)) {
    const out = join(folder, `page${made.size}.html`);
    run(...args, "-o", out);
    made.set(key, out);
  }
  return made.get(key);
}
export function pageOf(trace, ...args) {
  return written("report", trace, "--format", "html", ...args);
}

// Tables of the same run as CSV: {name: [{column: text}]}.
const read = new Map();
export function tablesOf(trace) {
  if (!read.has(trace)) {
    const out = join(folder, `tables${read.size}`);
    // A folder holds the tables of one command.
    const folders = ["report", "layers"].map((command) => {
      const own = join(out, command);
      run(command, trace, "--format", "csv", "-o", own + "/");
      return own;
    });
    const text = (name) => {
      const path = folders.map((own) => join(own, name + ".csv"))
        .find((own) => existsSync(own));
      return path ? readFileSync(path, "utf8") : "";
    };
    read.set(trace, Object.assign((name) => parseCsv(text(name)), { text }));
  }
  return read.get(trace);
}

export function parseCsv(text) {
  const rows = [[]];
  const pattern = /(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/gy;
  for (let match; pattern.lastIndex < text.length &&
       (match = pattern.exec(text));) {
    rows.at(-1).push(match[1]?.replace(/""/g, '"') ?? match[2]);
    if (match[3] === "\n") rows.push([]);
  }
  if (rows.at(-1).length === 0) rows.pop();
  const [head = [], ...body] = rows;
  return body.map((row) =>
    Object.fromEntries(head.map((name, i) => [name, row[i]])));
}

// "12.345" in microseconds as nanoseconds.
export function ns(text) {
  const [, sign, whole, part] = /^(-?)(\d+)\.(\d{3})$/.exec(text);
  return Number(sign + whole + part);
}

// Waits are for a state of the page, never for a time; this is when a test
// gives up on a machine that does other work.
export const kWaitMs = Number(process.env.LAMINA_WAIT_MS ?? 120_000);

// The shell without windows takes half the processor time of the browser.
const chromiumPath = process.env.LAMINA_CHROMIUM ??
  ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find(existsSync);

let browser;
let contexts = [];
export const problems = [];

function launch() {
  // Over WebDriver BiDi, which the Firefox of a distribution speaks.
  if (process.env.LAMINA_FIREFOX) {
    return firefox.launch({ timeout: kWaitMs, channel: "moz-firefox",
                            executablePath: process.env.LAMINA_FIREFOX });
  }
  return launchChromium();
}

export function launchChromium(args = []) {
  return chromium.launch({ timeout: kWaitMs, executablePath: chromiumPath,
    args: ["--no-sandbox", "--disable-gpu", ...args] });
}

export async function open(file, options = {}) {
  if (!browser?.isConnected()) browser = await launch();
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1280, height: options.height ?? 860 },
    colorScheme: options.theme ?? "light",
    reducedMotion: options.reducedMotion ?? "no-preference",
    hasTouch: options.touch ?? false,
    javaScriptEnabled: options.script ?? true });
  contexts.push(context);
  context.setDefaultTimeout(kWaitMs);
  context.setDefaultNavigationTimeout(kWaitMs);
  const page = await context.newPage();
  const note = (text) => { if (!options.mayFail) problems.push(text); };
  page.on("console", (m) => note(`console: ${m.text()}`));
  page.on("pageerror", (e) => note(`page error: ${e.message}`));
  page.on("dialog", (d) => {
    note(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  page.on("request", (r) => {
    const url = r.url();
    if (!url.startsWith("file://" + file) && !/^(blob|data):/.test(url))
      note(`request: ${url.slice(0, 200)}`);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (e) =>
      console.error("policy: " + e.violatedDirective + " " + e.blockedURI));
  });
  if (options.init) await page.addInitScript(options.init);
  await page.goto("file://" + file + (options.hash ?? ""));
  if (options.script !== false) await ready(page);
  return page;
}

// Waits until `holds`, a function that runs in the page, is true.
export async function until(page, holds, argument) {
  await page.waitForFunction(holds, argument, { timeout: kWaitMs,
                                                polling: 30 });
}

export async function ready(page, view) {
  await until(page, (name) => {
    const now = document.documentElement.dataset.ready;
    return name ? now === name : now !== undefined;
  }, view);
}

// Opens an address and waits until its view is drawn.
export async function go(page, hash, view) {
  await page.evaluate((h) => {
    const before = location.hash;
    const { ready } = document.documentElement.dataset;
    if (before === h) return;
    delete document.documentElement.dataset.ready;
    location.hash = h;
    // The browser may write the same address in another way.
    if (location.hash === before)
      document.documentElement.dataset.ready = ready;
  }, hash);
  await ready(page, view);
}

// Does what makes the page draw again, and waits for that drawing: a link
// changes the address some time after the click.
export async function act(page, view, action) {
  const drawn = await page.evaluate(() => __lamina.frames.length);
  await action();
  await until(page, ([before, name]) => {
    const now = document.documentElement.dataset.ready;
    return __lamina.frames.length > before && now !== undefined &&
      (!name || now === name);
  }, [drawn, view]);
}
export function press(page, key, view) {
  return act(page, view, () => page.keyboard.press(key));
}
export function click(page, target, view) {
  return act(page, view, () => target.click());
}

// Types into the search box and waits for the results of that text.
export async function search(page, text) {
  await page.locator("[data-k=search]").fill(text);
  await until(page, (query) => {
    const list = document.querySelector(".results");
    return !list.hidden && list.dataset.query === query;
  }, text);
  return page.locator(".results li").allTextContents();
}

// What an action copies: waits until the clipboard holds another text than
// before.
export async function copied(page, action) {
  await page.context().grantPermissions(["clipboard-read",
                                         "clipboard-write"]);
  const mark = `nothing copied yet ${Math.random()}`;
  await page.evaluate((text) => navigator.clipboard.writeText(text), mark);
  await action();
  await until(page, async (text) =>
    await navigator.clipboard.readText() !== text, mark);
  return page.evaluate(() => navigator.clipboard.readText());
}

// Pages of a test end with it, so that no test pays for those before it.
export async function closePages() {
  const open = contexts;
  contexts = [];
  for (const context of open) await context.close().catch(() => {});
}

export function browserEnded() {
  return browser !== undefined && !browser.isConnected();
}
export async function done() { await browser?.close(); }

// --- assertions ---

export class Check {
  constructor(name) {
    this.name = name;
    this.held = 0;
    this.failures = [];
    this.left_out = [];
  }
  // What this machine has no data for; a failure with LAMINA_NO_SKIP=1.
  skip(reason) {
    this.left_out.push(reason);
    if (process.env.LAMINA_NO_SKIP === "1")
      this.failures.push(`LAMINA_NO_SKIP is set, and there is something to skip: ${reason}`);
  }
  equal(what, found, expected) {
    const a = JSON.stringify(found);
    const b = JSON.stringify(expected);
    if (a === b) ++this.held;
    else this.failures.push(`${what}: found ${String(a).slice(0, 300)}, ` +
                            `expected ${String(b).slice(0, 300)}`);
  }
  true(what, condition) { this.equal(what, Boolean(condition), true); }
  fail(error) {
    this.failures.push(String(error.stack ?? error).slice(0, 2000));
  }
  // Of a script that is one check: says what did not hold, and ends.
  end() {
    for (const failure of this.failures.slice(0, 20))
      console.log("FAILED", failure);
    console.log(`${this.held} held, ${this.failures.length} did not`);
    process.exit(this.failures.length > 0 || this.held === 0 ? 1 : 0);
  }
}
