// SPDX-License-Identifier: Apache-2.0
//
// The pytest file of a pass.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/generate/example.h"
#include "graph/generate/walk.h"

namespace lamina::generate {

struct TestInput {
  const graph::Rule* rule = nullptr;
  bool pattern_form = false;
  bool writes = false;  // the new op writes to operands
  // By alternative of the rule; nothing: the dump has no place of it.
  std::vector<std::optional<Example>> examples;
  graph::OptionOf option;
  std::map<std::string, std::string> options;  // defaults, Python literals
};

struct TestText {
  std::string places;  // functions that build the examples
  std::string tests;
  std::vector<std::string> names;
  Needs needs;
};

TestText WriteTests(const TestInput& input);

// A value of meta["val"]: "tensor((2, 3), torch.bfloat16)", "None".
std::string ValueText(std::string_view result);

}  // namespace lamina::generate
