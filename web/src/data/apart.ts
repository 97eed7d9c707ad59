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
