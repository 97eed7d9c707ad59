// SPDX-License-Identifier: Apache-2.0
//
// Elements without markup: text enters as text only.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, string | number | boolean | undefined |
  ((event: never) => void)>;

function fill(element: Element, props: Props | null, children: Child[]): void {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(key, value as unknown as EventListener);
    } else {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K, props?: Props | null, ...children: Child[]):
    HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, props ?? null, children);
  return element;
}

export function svg(tag: string, props?: Props | null,
                    ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, props ?? null, children);
  return element;
}

export function download(name: string, data: Blob): void {
  const url = URL.createObjectURL(data);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// False where the browser refuses.
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    // The only way that works from a file without permission.
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
