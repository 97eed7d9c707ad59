// SPDX-License-Identifier: Apache-2.0
//
// Writes a JSON document: values are given one after the other, the commas,
// colons, quotes and line breaks between them are made here. Texts are escaped;
// a number that JSON has no form for becomes null.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::json {

class Writer {
 public:
  enum class Spaces : uint8_t {
    kNone,   // {"a":1,"b":[2,3]}
    kAfter,  // {"a": 1, "b": [2, 3]}
  };
  // How the members of an object or array stand.
  enum class Lines : uint8_t { kOne, kEach };

  // Appends to `out`, which outlives the writer. A line begins with `indent`
  // spaces for each open object or array.
  explicit Writer(std::string& out, Spaces spaces = Spaces::kNone,
                  size_t indent = 0)
      : out_(out), spaces_(spaces), indent_(indent) {}

  void Object(Lines lines = Lines::kOne) { Open('{', '}', lines); }
  void Array(Lines lines = Lines::kOne) { Open('[', ']', lines); }
  void Close();
  // What comes next stands on a line of its own.
  void NewLine() { new_line_ = true; }

  // In an object a value follows its key.
  void Key(std::string_view key);
  void Text(std::string_view text);
  template <std::integral T>
  void Int(T value) {
    Number(static_cast<int64_t>(value));
  }
  void Real(double value);
  void Microseconds(int64_t ns);  // exact, with three decimals
  void Bool(bool value);
  void Null() { Raw("null"); }
  void Raw(std::string_view json);  // a value that is JSON already

  void Object(std::string_view key, Lines lines = Lines::kOne) {
    Key(key);
    Object(lines);
  }
  void Array(std::string_view key, Lines lines = Lines::kOne) {
    Key(key);
    Array(lines);
  }
  void Text(std::string_view key, std::string_view text) {
    Key(key);
    Text(text);
  }
  template <std::integral T>
  void Int(std::string_view key, T value) {
    Key(key);
    Int(value);
  }
  void Real(std::string_view key, double value) {
    Key(key);
    Real(value);
  }
  void Microseconds(std::string_view key, int64_t ns) {
    Key(key);
    Microseconds(ns);
  }
  void Bool(std::string_view key, bool value) {
    Key(key);
    Bool(value);
  }
  void Raw(std::string_view key, std::string_view json) {
    Key(key);
    Raw(json);
  }
  template <class List>
  void Texts(std::string_view key, const List& texts) {
    Array(key);
    for (const auto& text : texts) Text(std::string_view(text));
    Close();
  }
  template <class List>
  void Ints(std::string_view key, const List& values) {
    Array(key);
    for (const auto value : values) Int(value);
    Close();
  }

 private:
  struct Level {
    char close;
    Lines lines;
    bool any;
  };
  void Number(int64_t value);
  void Open(char open, char close, Lines lines);
  // What stands before a key, or before a value without one.
  void Begin();
  void Break();

  std::string& out_;
  Spaces spaces_;
  size_t indent_;
  std::vector<Level> levels_;
  bool after_key_ = false;
  bool new_line_ = false;
};

}  // namespace lamina::json
