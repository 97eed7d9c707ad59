// SPDX-License-Identifier: Apache-2.0
//
// Keys of tracks in the address: they say the same track in any report of the
// trace, in characters that need no escape there.

export function trackKeys(names: string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const key = name.replace(/[^0-9A-Za-z.]+/g, "-").slice(0, 60);
    const twins = seen.get(key) ?? 0;
    seen.set(key, twins + 1);
    return twins > 0 ? `${key}.${twins}` : key;
  });
}
