// SPDX-License-Identifier: Apache-2.0
//
// Colour means the group of a kernel's family, in every view. The set was
// searched by a program: at least 3:1 against both pages, and as far apart as
// possible under normal vision and three kinds of colour blindness. A test
// computes both again and compares with data/labels/palette.yaml.

export { kGroups } from "../data/groups";

const kLight: Record<string, string> = {
  gemm: "#095ef7", attention: "#531268", softmax: "#c97353", norm: "#286150",
  conv: "#170d9e", elementwise: "#a18903", reduce: "#52640b", moe: "#149bae",
  comm: "#5f0403", memory: "#1c202a", other: "#8a8c83",
};
const kDark: Record<string, string> = {
  gemm: "#7fb8dd", attention: "#a545c4", softmax: "#d93404", norm: "#5ffabd",
  conv: "#5f54f3", elementwise: "#f3be5f", reduce: "#d5eb2c", moe: "#c3eff9",
  comm: "#d8615b", memory: "#687285", other: "#a6a6a8",
};
const kWhiteLight = new Set(["gemm", "attention", "norm", "conv", "reduce",
  "comm", "memory"]);
const kWhiteDark = new Set(["attention", "softmax", "conv", "memory"]);

export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}
export function groupColor(group: string): string {
  const set = isDark() ? kDark : kLight;
  return set[group] ?? set.other!;
}
export function textOn(group: string): string {
  return (isDark() ? kWhiteDark : kWhiteLight).has(group) ? "#ffffff"
    : "#000000";
}

// Idle time by what it was spent on. It is hatched, work is solid: texture
// separates the two, colour only the kinds of one.
const kSpentLight: Record<string, string> = {
  input: "#ae113b", host: "#f06d03", launch: "#836c09", sync: "#d56ad4",
  wait: "#59616f", outside: "#59616f", unknown: "#9b9283",
};
const kSpentDark: Record<string, string> = {
  input: "#be3001", host: "#f8a174", launch: "#f0d105", sync: "#c75dc5",
  wait: "#676969", outside: "#676969", unknown: "#9f9594",
};
export function spentColor(key: string): string {
  return (isDark() ? kSpentDark : kSpentLight)[key] ?? ink("muted");
}
// Of an element: 2 px lines, 6 px apart, over a tint.
export function spentPattern(key: string): string {
  const color = spentColor(key);
  return `repeating-linear-gradient(135deg, ${color} 0 2px, ${color}33 2px 6px)`;
}

// Colours of the page for drawings, as page.css sets them.
export function ink(name: "text" | "muted" | "line" | "page" | "panel" |
    "host" | "link" | "ghost" | "hostink" | "module" |
    "q0" | "q1" | "q2" | "q3" | "q4"): string {
  return getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name).trim();
}

// Computation, exposed communication, exposed copies, idle time.
export function stepBarColor(part: number): string {
  return ["var(--q3)", "var(--more)", "var(--muted)", "var(--ghost)"][part]!;
}

// Of what memory is for, and other keys of allocations: the colours of kernels,
// which are told apart by everyone, in another order.
const kMemory = ["gemm", "comm", "attention", "norm", "softmax", "moe",
  "elementwise", "conv", "reduce", "memory", "other"];
export function memoryColor(group: number): string {
  return groupColor(kMemory[group] ?? "other");
}
