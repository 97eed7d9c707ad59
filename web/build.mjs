// SPDX-License-Identifier: Apache-2.0
//
// Bundles web/src to a script and a style and writes the template of each kind
// of page: everything but title, summary and data. The policy in the head names
// the two by their hashes, so nothing else on the page can run. Pages of traces
// do not carry what lays graphs out, nor those of dumps the views of events.
// The library is what lamina serve shows first.
//   node build.mjs WEB_DIR WORK_DIR OUT_TRACE OUT_RANKS OUT_GRAPH OUT_MEMORY OUT_LIBRARY
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [web, work, traceOut, ranksOut, graphOut, memoryOut, libraryOut] =
  process.argv.slice(2);
const require = createRequire(join(work, "package.json"));
const esbuild = require("esbuild");

const kMaxBytes = 300_000;

async function bundle(entry) {
  const result = await esbuild.build({
    entryPoints: [join(web, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    format: "iife",
    target: ["chrome103", "firefox113", "safari16.4"],
    nodePaths: [join(work, "node_modules")],
    legalComments: "none",
    logLevel: "warning",
  });
  return result.outputFiles[0].text.trimEnd();
}

function hash(text) {
  return "sha256-" + createHash("sha256").update(text).digest("base64");
}

// Equal texts stand once.
function licencesOf(packages) {
  const licences = new Map();
  for (const name of packages) {
    const text = readFileSync(join(work, "node_modules", name, "LICENSE"),
                              "utf8").replace(/--/g, "- -");
    licences.set(text, [...(licences.get(text) ?? []), name]);
  }
  return [...licences].map(
    ([text, names]) => `<!--\n${names.join(", ")}\n${text}\n-->\n`).join("");
}

const common = await bundle("page.css");

// `own`: the style of this program alone.
async function write(entry, own, packages, out) {
  const style = common + (own ? "\n" + await bundle(own) : "");
  const script = await bundle(entry);
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style))
    throw new Error("the bundle holds text that ends its element");
  const policy = [
    "default-src 'none'",
    `script-src '${hash(script)}'`,
    `style-src '${hash(style)}'`,
    "img-src blob: data:",
    "worker-src blob:",
    // Empty in a file, which asks nobody.
    "connect-src {{connect}}",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");

  const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{title}}</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<div id="static">
{{summary}}
</div>
{{data}}
<script>${script}</script>
${licencesOf(packages)}</body>
</html>
`;
  for (const mark of ["{{connect}}", "{{title}}", "{{summary}}", "{{data}}"]) {
    if (page.split(mark).length !== 2)
      throw new Error(`the bundle holds the placeholder ${mark}`);
  }
  if (page.length > kMaxBytes)
    throw new Error(`${entry}: ${page.length} bytes, more than ${kMaxBytes}`);
  writeFileSync(out, page);
  console.log(`${entry}: page without data: ${page.length} bytes`);
}

await write("trace.ts", "", [], traceOut);
await write("ranks.ts", "", [], ranksOut);
await write("graph.ts", "graph.css", ["@dagrejs/dagre", "@dagrejs/graphlib"],
            graphOut);
await write("memory.ts", "memory.css", [], memoryOut);
await write("library.ts", "library.css", [], libraryOut);
