// SPDX-License-Identifier: Apache-2.0
//
// What tells paths apart: of several the parts that not all of them share.

export function apart(paths: string[]): string[] {
  const lists = paths.map((path) => path.split("/"));
  const least = Math.min(...lists.map((parts) => parts.length));
  const shared = (at: (parts: string[]) => string | undefined) =>
    lists.every((parts) => at(parts) === at(lists[0]!));
  let head = 0;
  while (head < least && shared((parts) => parts[head])) ++head;
  let tail = 0;
  while (tail < least - head && shared((parts) => parts.at(-1 - tail))) ++tail;
  return lists.map((parts) => parts.slice(head, parts.length - tail).join("/"));
}

// A name in parts: what it shares with the name most like it, what tells it
// apart, and the shared rest.
export interface Parted {
  head: string;
  middle: { text: string; own: boolean }[];  // own: the other one has it not
  tail: string;
}

const kLeastShared = 8;    // letters: less is no common beginning
const kMostNames = 20_000;
const kTail = 14;          // letters kept of a name that nothing is like

const isWord = (letter: string | undefined) =>
  letter !== undefined && /[0-9A-Za-z]/.test(letter);

function sharedHead(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  while (at < most && a[at] === b[at]) ++at;
  // Words are not torn: MT256x32 and MT32x32 differ from their M on.
  while (at > 0 && isWord(a[at - 1]) && (isWord(a[at]) || isWord(b[at]))) --at;
  return at;
}

function sharedTail(a: string, b: string, head: number): number {
  const most = Math.min(a.length, b.length) - head;
  let at = 0;
  while (at < most && a[a.length - 1 - at] === b[b.length - 1 - at]) ++at;
  while (at > 0 && isWord(a[a.length - at]) &&
         (isWord(a[a.length - at - 1]) || isWord(b[b.length - at - 1]))) --at;
  return at;
}

// Words of a name with what parts them.
function wordsOf(text: string): string[] {
  return text.match(/[0-9A-Za-z]+|[^0-9A-Za-z]+/g) ?? [];
}

function parted(name: string, other: string | undefined): Parted {
  const head = other === undefined ? 0 : sharedHead(name, other);
  if (other === undefined || head < kLeastShared) {
    const cut = Math.max(0, name.length - kTail);
    return { head: "", middle: [{ text: name.slice(0, cut), own: false }],
             tail: name.slice(cut) };
  }
  const tail = sharedTail(name, other, head);
  const words = wordsOf(name.slice(head, name.length - tail));
  const others = wordsOf(other.slice(head, other.length - tail));
  const aligned = words.length === others.length;
  const middle: Parted["middle"] = [];
  for (const [i, text] of words.entries()) {
    const own = !aligned || text !== others[i];
    const last = middle[middle.length - 1];
    if (last?.own === own) last.text += text;
    else middle.push({ text, own });
  }
  return { head: name.slice(0, head), middle,
           tail: name.slice(name.length - tail) };
}

// Each of some names beside the one that it shares its longest beginning with.
export function tellApart(names: Iterable<string>): (name: string) => Parted {
  const all = [...new Set(names)].sort();
  const known = new Map<string, Parted>();
  const place = all.length > kMostNames ? null
    : new Map(all.map((name, i) => [name, i]));
  return (name) => {
    let parts = known.get(name);
    if (parts) return parts;
    const at = place?.get(name);
    const near = at === undefined ? []
      : [all[at - 1], all[at + 1]].filter((one) => one !== undefined);
    // Of two with one beginning the one that shares more of the end.
    const most = near.map((one) => {
      const head = sharedHead(name, one);
      return head * 1e6 + sharedTail(name, one, head);
    });
    parts = parted(name, near[most.indexOf(Math.max(...most))]);
    known.set(name, parts);
    return parts;
  };
}
