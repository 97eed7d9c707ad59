// SPDX-License-Identifier: Apache-2.0
//
// Strings from a trace are hostile: every place that writes one uses the
// escape of its medium from here.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// For a terminal: control characters (also C1 and the Unicode direction
// overrides) become \xNN or \u202e, so that no name can move the cursor,
// recolour or reorder the text around it. Broken UTF-8 becomes \xNN.
std::string EscapeTerminal(std::string_view text);

// A JSON string literal with quotes. Broken UTF-8 becomes U+FFFD; `<`, `>` and
// `&` stay (the HTML writer has its own rule).
std::string JsonQuote(std::string_view text);
void AppendJsonQuoted(std::string& out, std::string_view text);

// One CSV field (RFC 4180): quoted only where needed.
void AppendCsvField(std::string& out, std::string_view text);

// A CSV field that a spreadsheet will not run as a formula: a leading
// = + - @ tab or CR of a text that is no number gets an apostrophe.
void AppendSafeCsvField(std::string& out, std::string_view text);

// Text for HTML and SVG: & < > " ' become entities, control characters
// U+FFFD.
std::string EscapeXml(std::string_view text);

// Markdown (GitHub's): running text without markup of its own, and a code span
// that may stand in a cell of a table. Both without control characters, as
// EscapeTerminal.
std::string EscapeMarkdown(std::string_view text);
std::string MarkdownCode(std::string_view text);

// A Python string literal in the form that repr() of Python 3 gives.
void AppendPythonQuoted(std::string& out, std::string_view text);

// Cuts `text` to at most `max_bytes` at a UTF-8 boundary and adds "..." when
// something was cut.
std::string Shorten(std::string_view text, size_t max_bytes);

// Number of terminal cells of UTF-8 text: combining marks count 0, wide East
// Asian characters and emoji 2.
size_t DisplayWidth(std::string_view text);

// The longest prefix of `text` that is at most `cells` wide.
std::string_view DisplayPrefix(std::string_view text, size_t cells);

// Valid UTF-8 with each broken byte replaced by U+FFFD.
std::string RepairUtf8(std::string_view text);
bool IsValidUtf8(std::string_view text);

// Decodes one code point at `pos` and moves past it. Broken input gives
// 0xFFFFFFFF and moves by one byte.
char32_t DecodeUtf8(std::string_view text, size_t& pos);
void AppendUtf8(std::string& out, char32_t code_point);

}  // namespace lamina
