// SPDX-License-Identifier: Apache-2.0
#include "render/html/page_text.h"

#include <algorithm>
#include <array>

#include "base/counted.h"
#include "base/escape.h"
#include "base/json/scan.h"
#include "render/redact/paths.h"

namespace lamina::render {
namespace {

using std::string_view;

// Values of these keys are words of the engine, by which the page knows what
// it reads.
bool IsOwnWord(string_view key) {
  constexpr std::array<string_view, 4> kKeys = {"kind", "format", "left_out",
                                                "dropped"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

bool IsFile(const std::string& word) {
  return !word.starts_with('-') &&
         (word.find('/') != std::string::npos || !ExtensionOf(word).empty());
}

// Calls `text` with each text of a JSON value that is not a key, and the key
// it belongs to, and writes the value with what it returns.
template <typename Text>
std::string WithTexts(string_view json, const Text& text) {
  std::string out, key;
  for (size_t i = 0; i < json.size();) {
    if (json[i] != '"') {
      out += json[i++];
      continue;
    }
    size_t end = i + 1;
    while (end < json.size() && json[end] != '"')
      end += json[end] == '\\' ? 2 : 1;
    const std::string value =
        json::DecodeString(json.substr(i + 1, end - i - 1));
    i = std::min(end + 1, json.size());
    if (i < json.size() && json[i] == ':') {
      key = value;
      AppendJsonQuoted(out, value);
    } else {
      AppendJsonQuoted(out, text(key, value));
    }
  }
  return out;
}

}  // namespace

PageText::PageText(const Page& page) {
  if (page.redact == nullptr) return;
  redactor_.emplace(*page.redact);
  const auto learn = [&](string_view, const std::string& value) {
    redactor_->Learn(value);
    return value;
  };
  for (const std::string& input : page.document.inputs)
    redactor_->LearnFile(input);
  for (const PageCommand& command : page.commands) {
    for (const std::string& word : command.words) {
      if (IsFile(word)) redactor_->LearnFile(word);
    }
  }
  for (const Note& note : page.document.result.notes) {
    redactor_->Learn(note.text);
    for (const Evidence& evidence : note.evidence)
      redactor_->Learn(evidence.value);
  }
  page.strings.ForEach([&](string_view text) { redactor_->Learn(text); });
  for (const auto& [name, json] : page.facts) WithTexts(json, learn);
  redactor_->Ready();
}

std::string PageText::operator()(string_view text) {
  return redactor_ ? redactor_->Apply(text) : std::string(text);
}

std::string PageText::File(const std::string& path) {
  return redactor_ ? redactor_->ApplyFile(path) : path;
}

std::string PageText::Argument(const std::string& word) {
  return IsFile(word) ? File(word) : (*this)(word);
}

std::string PageText::Json(string_view json) {
  if (!redactor_) return std::string(json);
  return WithTexts(json, [&](string_view key, const std::string& value) {
    if (IsOwnWord(key)) return value;
    return key == "input" ? File(value) : (*this)(value);
  });
}

std::string PageText::Privacy() const {
  if (!redactor_) {
    return "This page holds names, shapes, paths and hosts of the trace; "
           "--redact replaces paths, host and user names by tokens.";
  }
  const Redactor::Counts counts = redactor_->counts();
  std::string text =
      "This page is redacted: " + Counted(counts.paths, "path") + ", " +
      Counted(counts.hosts, "host name") +
      (counts.keys > 0
           ? ", " + Counted(counts.keys, "key or token", "keys and tokens")
           : std::string()) +
      " and " + Counted(counts.users, "user name") +
      " are replaced by tokens. Names of kernels, ops, modules "
      "and functions, shapes and times are those of the trace.";
  if (counts.common > 0) {
    text += " " +
            Counted(counts.common, "name of a host or user is",
                    "names of hosts or users are") +
            " also a common word, which stays outside of paths.";
  }
  return text;
}

}  // namespace lamina::render
