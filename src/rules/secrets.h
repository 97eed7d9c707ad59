// SPDX-License-Identifier: Apache-2.0
//
// What a text gives away by its form, by the rules of data/secrets: keys,
// tokens and passwords, accounts, hosts, encoded paths.
#pragma once

#include <functional>
#include <memory>
#include <re2/re2.h>
#include <re2/set.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rules/document.h"

namespace lamina::rules {

enum class SecretKind : uint8_t { kSecret, kUser, kHost, kPath };

// A part of a text that must not be shown.
struct SecretSpan {
  size_t begin = 0;
  size_t end = 0;
  SecretKind kind = SecretKind::kSecret;
};

// Whether a text looks as if chance had written it: no number, no name of a
// type, no word. That is enough behind the name of a secret (`named`). Alone, a
// run of 16 bytes or more must mix kinds of bytes about as often as chance
// does; names that people and compilers make keep to one kind for some bytes,
// or change at every byte.
bool IsOpaque(std::string_view text, bool named);

// Thread safe.
class SecretTable {
 public:
  static Result<std::shared_ptr<const SecretTable>> Load(const DataSet& data);
  // That of the program, without any --rules.
  static std::shared_ptr<const SecretTable> BuiltIn();

  // All that the rules capture, by where it begins, the longer first. Parts
  // may overlap: an account stands in an encoded path.
  std::vector<SecretSpan> Find(std::string_view text) const;

  // Holds every rule against its examples and counter-examples; one sentence
  // for each that does not hold.
  std::vector<std::string> CheckExamples() const;

 private:
  enum class Opaque : uint8_t { kAny, kNamed, kAlone };  // see IsOpaque()
  struct Rule {
    std::string id;
    std::unique_ptr<RE2> pattern;
    Opaque opaque = Opaque::kAny;
    // Of every capturing group, what it is.
    std::vector<std::pair<int, SecretKind>> groups;
    struct Example {
      std::string text;
      std::vector<std::string> gives;
    };
    std::vector<Example> examples;
    std::vector<std::string> counter_examples;
  };

  Status AddFile(const DataFile& file);
  static void FindBy(const Rule& rule, std::string_view text,
                     std::vector<SecretSpan>& spans);

  std::vector<Rule> rules_;
  std::unique_ptr<RE2::Set> any_;  // of all rules, to look at a text once
};

}  // namespace lamina::rules
