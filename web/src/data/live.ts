// SPDX-License-Identifier: Apache-2.0
//
// Where a page has its data: a file holds them beside the program; lamina serve
// gives the same file to who has the token, and its parts are read out of it.
// The token comes in the address once, behind the #, is never sent as part of
// one, and stays with the tabs that are open.

const kToken = "lamina-token";

// Takes the token out of the address, where it stands in it.
export function takeToken(): void {
  const match = /^#token=([A-Za-z0-9_-]{43})$/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(kToken, match[1]!);
  history.replaceState(null, "", location.pathname);
}
export function token(): string | null {
  return sessionStorage.getItem(kToken);
}

const kAskMs = 400;
// A link that opens in a new tab: the tabs of this origin that know the token
// tell it, which no other origin hears. Nothing is stored beyond a tab.
export async function shareToken(): Promise<void> {
  const channel = new BroadcastChannel(kToken);
  if (token() === null) {
    await new Promise<void>((done) => {
      const late = setTimeout(done, kAskMs);
      channel.onmessage = ({ data }: MessageEvent<unknown>) => {
        if (typeof data !== "string" || !/^[A-Za-z0-9_-]{43}$/.test(data))
          return;
        sessionStorage.setItem(kToken, data);
        clearTimeout(late);
        done();
      };
      channel.postMessage(null);
    });
  }
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    const known = token();
    if (data === null && known !== null) channel.postMessage(known);
  };
}

export class Refused extends Error {
  constructor(readonly status: number, readonly code: string, what: string,
              readonly hint: string) { super(what); }
}

// Asks the server; what it refuses is raised with its reason.
export async function ask(path: string, body?: unknown,
                          signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> =
    { Authorization: `Bearer ${token() ?? ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, { headers, signal: signal ?? null,
      method: body === undefined ? "GET" : "POST", cache: "no-store",
      body: body === undefined ? null : JSON.stringify(body) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, "gone", "lamina serve does not answer",
                      "it may have ended: start it again");
  }
  if (response.ok) return response;
  let error: { code?: unknown; what?: unknown; hint?: unknown;
               excerpt?: unknown } = {};
  try {
    error = ((await response.json()) as { error: typeof error }).error ?? {};
  } catch { /* An answer of the connection, without a body. */ }
  throw new Refused(response.status, String(error.code ?? ""),
    [error.what ?? `status ${response.status}`, error.excerpt].filter(Boolean)
      .join("\n"), String(error.hint ?? ""));
}

// The document that holds manifest and blocks.
let source: Document = document;
export function part(id: string): Element | null {
  return source.getElementById(id);
}

// The address of the trace of a page that is served; null in a file.
export function servedTrace(): string | null {
  const text = document.getElementById("live")?.textContent;
  return text ? (JSON.parse(text) as { trace?: string }).trace ?? null : null;
}

// Fetches them, where this page has none of its own.
export async function loadParts(): Promise<void> {
  const trace = servedTrace();
  if (!trace) return;
  takeToken();
  await shareToken();
  const text = await (await ask(trace + "/page")).text();
  // Scripts of a document that is made so do not run.
  source = new DOMParser().parseFromString(text, "text/html");
  document.title = source.title;
}

// Waits for the findings that the page of this trace was written without; the
// reason where there are none.
export async function laterFindings(): Promise<string> {
  for (;;) {
    const { state, error, facts } = await (await ask(servedTrace()!)).json() as
      { state: string; error?: string; facts?: { findings?: string } };
    if (state !== "open") {
      return `${error ?? `the trace is ${state}`}; load this page again when ` +
             "the trace is open";
    }
    const findings = facts?.findings;
    if (findings === undefined)
      return "the trace was opened anew; load this page again";
    if (findings !== "coming") return findings === "here" ? "" : findings;
    await new Promise((done) => setTimeout(done, 2000));
  }
}
