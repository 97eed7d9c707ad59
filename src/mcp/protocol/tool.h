// SPDX-License-Identifier: Apache-2.0
//
// A tool as an agent sees it: one described row, from which the list of tools,
// the check of arguments and the documentation follow. What runs it knows
// documents and nothing of the protocol.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lamina/result.h"

namespace lamina::mcp {

// What is written keeps the order of its keys; what is read has them sorted,
// so that equal arguments are equal texts.
using Json = nlohmann::ordered_json;
using Input = nlohmann::json;

enum class Type : uint8_t { kText, kWhole, kReal, kFlag };

// What a text stands for.
enum class Role : uint8_t {
  kValue,
  kPath,    // a file or folder below an allowed one, or a handle of one
  kOutput,  // a file to write, below a folder where that is allowed
};

struct Param {
  std::string name;  // snake_case
  std::string doc;   // one sentence without a full stop
  Type type = Type::kText;
  Role role = Role::kValue;
  bool required = false;
  bool many = false;
  std::vector<std::string> choices = {};  // all values, if they are few
  std::optional<double> low = {}, high = {};
  std::string default_text = {};  // empty: none
};

// An error that teaches.
struct Problem {
  Problem(Error from) : error(std::move(from)) {}  // NOLINT: as an Error is
  Error error;
  std::vector<std::string> did_you_mean;
  std::string example;  // of a call that works
};

// A call that makes sense behind another.
struct Next {
  std::string tool;
  Json arguments;
  std::string why;
};

struct Made {
  Document document;
  std::vector<Next> next;
  // What stands before all: an object, null for none, and the same as lines
  // without control characters.
  Json answer;
  std::string answer_text;
};

struct Progress {
  std::string stage;
  uint64_t done = 0;
  uint64_t total = 0;  // 0: unknown
};

// A call while it runs.
struct Call {
  // Checked: names and types are those of the parameters; paths are absolute,
  // without links, and allowed.
  Input arguments;
  const std::atomic<bool>* stop = nullptr;  // set: the answer is not wanted
  std::function<void(const Progress&)> progress;

  bool Has(const char* name) const { return arguments.contains(name); }
  std::string Text(const char* name) const {
    return arguments.value(name, std::string());
  }
};

using Outcome = tl::expected<Made, Problem>;

struct Tool {
  std::string name;
  std::string title;
  std::string doc;
  std::vector<Param> params;
  // Makes or changes files.
  bool writes = false;
  std::function<Outcome(const Call&)> run;
};

}  // namespace lamina::mcp
