// SPDX-License-Identifier: Apache-2.0
//
// The official clients against lamina mcp. usage: node clients.mjs LAMINA
// SAMPLES CALLS [URL TOKEN], where CALLS is JSON: [[tool, arguments]...]; with
// the address of lamina serve they ask there instead. They hold every
// answer against the schema of its tool by themselves. Prints a line per thing
// that holds and "FAILED ..." per thing that does not.
import { Client as LegacyClient } from
  "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as LegacyTransport } from
  "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as LegacyHttp } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client, StreamableHTTPClientTransport } from
  "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [lamina, samples, callsText, url, token] = process.argv.slice(2);
const calls = JSON.parse(callsText);
const server = {
  command: lamina,
  args: ["mcp", "--allow", samples],
  stderr: "ignore",
};
const served = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };
const transport = () => url
  ? new StreamableHTTPClientTransport(new URL(url), served)
  : new StdioClientTransport(server);
const me = { name: "check", version: "1" };
const longQuery = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL " +
  "SELECT x + 1 FROM c WHERE x < 1000000000000) SELECT count(*) FROM c";

let failed = 0;
function check(what, holds, found) {
  if (!holds) ++failed;
  console.log(holds ? `ok ${what}`
                    : `FAILED ${what}: found ${JSON.stringify(found)}`);
}

async function use(name, client, transport, call) {
  await client.connect(transport);
  check(`${name}: instructions`, client.getInstructions().length > 100);
  const { tools } = await client.listTools();
  check(`${name}: tools`, tools.length === calls.length, tools.length);
  const answers = {};
  for (const [tool, args] of calls) {
    const result = await call(client, { name: tool, arguments: args });
    check(`${name}: ${tool}`, !result.isError && result.structuredContent,
          result);
    answers[tool] = result.structuredContent;
  }
  // Pages to the end.
  const query = {
    trace: "serve.json.gz",
    sql: "SELECT uid FROM slice ORDER BY uid",
    max_tokens: 2000,
  };
  const whole = await call(client, {
    name: "query",
    arguments: {
      ...query,
      sql: "SELECT count(*) AS n, sum(uid) AS s FROM slice",
    },
  });
  const uids = [];
  let pages = 0;
  for (let cursor; cursor !== null; ++pages) {
    const { structuredContent: page } = await call(client, {
      name: "query",
      arguments: cursor === undefined ? query : { ...query, cursor },
    });
    uids.push(...page.tables[0].rows.map(row => row[0]));
    cursor = page.next_cursor;
  }
  const [count, sum] = whole.structuredContent.tables[0].rows[0];
  check(`${name}: ${pages} pages hold all rows`,
        pages > 2 && uids.length === count &&
          uids.reduce((a, b) => a + b, 0) === sum,
        [uids.length, count]);
  // An error keeps its message.
  const error = await call(client, {
    name: "query",
    arguments: { trace: "serve.json.gz", sql: "SELECT nam FROM kernel" },
  });
  check(`${name}: an error says what is near`,
        error.isError && error.content[0].text.includes("did you mean: name"),
        error);
  let refused;
  try {
    await call(client, { name: "reprot", arguments: {} });
  } catch (thrown) {
    refused = thrown;
  }
  check(`${name}: an unknown tool`, refused?.code === -32602, refused);
  // Progress, and a cancel that frees its place.
  const stop = new AbortController();
  const told = [];
  let ended;
  try {
    await call(client, {
      name: "query",
      arguments: { trace: "serve.json.gz", sql: longQuery },
    }, {
      signal: stop.signal,
      onprogress: progress => {
        told.push(progress.progress);
        if (told.length === 2) stop.abort("enough");
      },
    });
  } catch (thrown) {
    ended = thrown;
  }
  check(`${name}: progress rises and a cancel ends the call`,
        ended !== undefined && told.length >= 2 && told[0] < told[1], told);
  const after = await call(client, {
    name: "query",
    arguments: { trace: "serve.json.gz", sql: "SELECT 5 AS five" },
  });
  check(`${name}: the next call`,
        after.structuredContent.tables[0].rows[0][0] === 5, after);
  if (client.getNegotiatedProtocolVersion) {
    const version = client.getNegotiatedProtocolVersion();
    check(`${name}: the newest version`, version === "2026-07-28", version);
  }
  await client.close();
  return answers;
}

const legacy = await use("2025-11-25", new LegacyClient(me),
  url ? new LegacyHttp(new URL(url), served) : new LegacyTransport(server),
  (client, params, options) => client.callTool(params, undefined, options));
const plain = (client, params, options) => client.callTool(params, options);
const modernClient = new Client(me, {
  versionNegotiation: { mode: { pin: "2026-07-28" } },
});
const modern = await use("2026-07-28", modernClient, transport(), plain);
const autoClient = new Client(me, { versionNegotiation: { mode: "auto" } });
await use("auto", autoClient, transport(), plain);
for (const tool of Object.keys(legacy)) {
  if (tool === "list_traces") continue; // says what is open
  check(`${tool}: both eras say the same`,
        JSON.stringify(legacy[tool]) === JSON.stringify(modern[tool]));
}
process.exit(failed > 0 ? 1 : 0);
