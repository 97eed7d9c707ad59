// SPDX-License-Identifier: Apache-2.0
//
// What can be asked of traces, dumps and snapshots, described: each question is
// a command of the program, each parameter an input or an option of it, with
// its name, meaning, type, values, range and default. The program, `lamina
// mcp`, this library and the module for Python ask by one list. How it is asked
// is in lamina/session.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lamina/export.h"

namespace lamina {

enum class ParamType : uint8_t { kFlag, kInt, kReal, kText };

// What a text stands for.
enum class ParamRole : uint8_t {
  kValue,
  kPath,    // a file or folder that is read
  kOutput,  // a file or folder that is written
};

struct ParamInfo {
  std::string name;  // snake_case: "min_share"
  std::string
      option;       // on the command line: "--min-share"; of an input its name
  std::string doc;  // one sentence without a full stop
  ParamType type = ParamType::kText;
  ParamRole role = ParamRole::kValue;
  bool required = false;
  bool many = false;                 // takes several values
  std::vector<std::string> choices;  // all values, if they are few
  std::optional<double> low, high;   // of a number
  std::string default_text;          // empty: none
  // Decided when the trace is opened: Session::Ask does not take it.
  bool at_opening = false;
};

struct QuestionInfo {
  std::string name;     // "graph_layer"
  std::string command;  // "graph layer"
  std::string title;    // a few words
  std::string doc;      // one or two sentences
  std::vector<ParamInfo> params;
  // Asked of one trace, which the parameter "trace" names: Session::Ask.
  bool of_trace = false;
  bool writes = false;  // makes files, where that is allowed
};

// All questions. Nothing is read or run.
LAMINA_API const std::vector<QuestionInfo>& ListQuestions();

// A number where a text is wanted is taken as its digits, a whole number where
// any is, and one text where there may be several.
using ParamValue =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
using Params = std::map<std::string, ParamValue, std::less<>>;

}  // namespace lamina
