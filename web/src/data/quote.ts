// SPDX-License-Identifier: Apache-2.0
//
// Words of a command line as a POSIX shell reads them. Names in a trace are
// hostile: nothing in them may end the word, run, or hide what is pasted.

const kPlain = /^[A-Za-z0-9_@%+=:,./-]+$/;
// Control and direction characters; also "!", which an interactive shell would
// expand outside of single quotes.
const kHidden =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff]/;

// One character in $'...': hidden ones as the octal of their bytes, which no
// digit behind them can lengthen.
function dollar(char: string): string {
  if (!kHidden.test(char) && !"\\'!".includes(char)) return char;
  return Array.from(new TextEncoder().encode(char),
    (byte) => "\\" + byte.toString(8).padStart(3, "0")).join("");
}

// Null for what no command line can hold: NUL, and characters that stand for
// bytes that are no UTF-8.
export function shellWord(text: string): string | null {
  if (/[\u0000\ufffd]|\p{Surrogate}/u.test(text)) return null;
  if (kPlain.test(text)) return text;
  if (!kHidden.test(text)) return "'" + text.replace(/'/g, "'\\''") + "'";
  return "$'" + Array.from(text, dollar).join("") + "'";
}

export function shellLine(words: string[]): string | null {
  const quoted = words.map(shellWord);
  return quoted.includes(null) ? null : quoted.join(" ");
}
