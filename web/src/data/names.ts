// SPDX-License-Identifier: Apache-2.0
//
// Short forms of the C++ names of kernels, as the engine makes them: demangled,
// without return type, parameters and namespaces. Two names may have one short
// form, so filters, copies and commands keep the whole name.

let shorts: ReadonlyMap<string, string> = new Map();

export function setShortNames(names: ReadonlyMap<string, string>): void {
  shorts = names;
}

// The name itself where it has no shorter form.
export function shortName(name: string): string {
  return shorts.get(name) ?? name;
}
