// SPDX-License-Identifier: Apache-2.0
//
// Whether the tests of a source tree test a fusion: by what they call and
// assert, never by their names alone.
#pragma once

#include <string>

#include "graph/fusion/kernel_lookup.h"
#include "graph/pattern/rule.h"

namespace lamina::fusion {

struct TestJudgement {
  std::string positive;   // file:line of an assert that a match is made
  std::string negative;   // and that none is, on something near
  std::string unrelated;  // none is made, on something else
  std::string named;      // file:line of a test that names the rule
};

// Test functions with those of their file that they call. A test names the
// rule by its key, the class of its transform or an op that it produces.
TestJudgement JudgeTests(const SourceIndex& tree, const graph::Rule& rule);

}  // namespace lamina::fusion
