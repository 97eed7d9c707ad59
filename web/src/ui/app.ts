// SPDX-License-Identifier: Apache-2.0
//
// What a view gets: the data, the state with the filter applied, and links to
// other states. A link is an anchor with the address of the state, so that
// every number can be copied, opened in a new tab and gone back from.

import { Filter, type Selection } from "../data/filter";
import type { Model, Table } from "../data/model";
import { Served } from "../data/served";
import { kMaxValues, toggled, toHash, type Chip, type ChipKind, type State } from
  "../data/state";
import { hasSpans, openFix, type Lit } from "./answer";
import { h } from "./dom";

export interface View {
  id: string;
  title: string;
  // Why the view has nothing to show; null if it has.
  missing(model: Model): string | null;
  // What it reads: tables, "device", "host".
  needs(model: Model): string[];
  // False for views that a filter means nothing to.
  filtered: boolean;
  // Long work before draw(); the old picture stays, dimmed, until it is done.
  prepare?(app: App): Promise<void>;
  draw(app: App, root: HTMLElement): void;
  // After the elements have entered the page and have a size.
  mounted?(app: App, root: HTMLElement): void;
  // Keys of this view alone; true if it used the key.
  key?(app: App, event: KeyboardEvent): boolean;
}

export type Patch = Partial<State>;

export class App {
  readonly filter: Filter;
  readonly served: Served | null;  // who is asked for what is not here
  selection: Selection = { mask: null, count: 0, time: 0 };
  // Set by the shell.
  go: (patch: Patch, replace?: boolean) => void = () => {};
  // Changes the address without drawing again: for what is already on the
  // screen, like the window of the timeline.
  keep: (patch: Patch) => void = () => {};
  show: (text: string) => void = () => {};
  // What is pointed at stays lit in the timeline; null: all is.
  lit: Lit | null = null;
  relight: () => void = () => {};
  said = "";
  missing: { title: string; reason: string }[] = [];

  constructor(readonly model: Model, public state: State) {
    this.served = Served.of(model);
    this.filter = new Filter(model, this.served);
  }

  light(lit: Lit | null): void {
    const fix = openFix(this);
    const wanted = lit ?? (fix > 0 ? { of: "fix", kind: fix - 1 } as const
      : null);
    this.lit = wanted && hasSpans(this, wanted) ? wanted : null;
    this.relight();
  }

  // One line at the foot of the page, read out politely.
  say(text: string): void {
    this.said = text;
    this.show(text);
  }

  // Time and number of the events of each row of a table (at row + 1; at 0
  // those in no row): of the filter, or without events what the table says.
  sumsOf(column: "kernel" | "op" | "module" | "layer" | "pass" | "step",
         table: Table, counts: string): { time: ArrayLike<number>;
                                          count: ArrayLike<number> } {
    if (this.model.device) return this.filter.by(column, table.rows + 1);
    const time = [0];
    const count = [0];
    for (let row = 0; row < table.rows; ++row) {
      time.push(table.num(row, "kernel_time_us"));
      count.push(table.num(row, counts));
    }
    return { time, count };
  }

  href(patch: Patch): string { return toHash({ ...this.state, ...patch }); }

  link(text: string | Node, patch: Patch, props: Record<string, string> = {}):
      HTMLAnchorElement {
    return h("a", { href: this.href(patch), ...props }, text);
  }
  button(text: string, click: () => void,
         props: Record<string, string | boolean> = {}): HTMLButtonElement {
    return h("button", { type: "button", ...props, click }, text);
  }

  // Setting of a view, kept in the address.
  option(key: string): string { return this.state.options[key] ?? ""; }
  withOption(key: string, value: string): Patch {
    return { options: { ...this.state.options, [key]: value } };
  }

  // All chips but those of this kind, and one of these values.
  only(kind: ChipKind, ...values: string[]): Chip[] {
    return [...this.state.chips.filter((c) => c.kind !== kind),
            { kind, values: values.slice(0, kMaxValues), not: false }];
  }
  toggle(kind: ChipKind, value: string): Chip[] {
    return toggled(this.state.chips, kind, value);
  }
  isChosen(kind: ChipKind, value: string): boolean {
    return this.state.chips.some((c) => c.kind === kind && !c.not &&
                                 c.values.includes(value));
  }

  // The rows of a table that prove a note or a number.
  rowsHref(table: string, column = "", value = ""): Patch {
    return {
      view: "tables",
      options: { ...this.state.options, "tables.name": table,
                 "tables.where": column ? `${column}=${value}` : "" },
    };
  }
}
