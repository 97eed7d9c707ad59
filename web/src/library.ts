// SPDX-License-Identifier: Apache-2.0
//
// The first page of lamina serve: the traces of its folders, what is known of
// those that are open, and SQL over one of them. The address says which:
// "#sql/ID", or nothing for the list.

import { Refused, shareToken, takeToken, token } from "./data/live";
import { h } from "./ui/dom";
import { Console } from "./ui/console";
import { Library } from "./ui/library";

const app = document.getElementById("app")!;

function showProblem(error: unknown): void {
  const known = error instanceof Refused;
  app.replaceChildren(h("main", {}, h("p", { class: "damaged", role: "alert" },
    known ? `${error.message}. ${error.hint}`
      : "the page met something that it does not understand")));
  document.documentElement.dataset.ready = "refused";
  if (!known) console.error(error);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
function setTheme(): void {
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
}
setTheme();
dark.addEventListener("change", setTheme);

async function start(): Promise<void> {
  takeToken();
  document.getElementById("static")?.remove();
  await shareToken();
  if (token() === null) {
    showProblem(new Refused(401, "token", "This tab does not know the token",
      "Open the address that lamina serve printed, with all behind the #."));
  } else {
    const library = new Library(showProblem);
    let console_: Console | null = null;
    const read = () => {
      console_?.stop();
      console_ = null;
      const match = /^#sql\/([0-9a-f]{24})$/.exec(location.hash);
      if (match) {
        library.stop();
        console_ = new Console(match[1]!);
        app.replaceChildren(console_.root);
      } else {
        app.replaceChildren(library.root);
        library.start();
      }
    };
    addEventListener("hashchange", read);
    read();
  }
}
void start();
