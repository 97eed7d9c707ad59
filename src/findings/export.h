// SPDX-License-Identifier: Apache-2.0
//
// A diagnosis for programs and reviews.
#pragma once

#include <string>
#include <vector>

#include "findings/findings.h"

namespace lamina::findings {

// One document: lamina, inputs, window, headline, findings, rules_run,
// overlaps. Keys in this order, the same bytes for any number of threads.
std::string ToJson(const Diagnosis& diagnosis,
                   const std::vector<std::string>& inputs);

// SARIF 2.1.0: a rule is a reportingDescriptor, a finding a result; rules that
// could not look are notifications of the invocation.
std::string ToSarif(const Diagnosis& diagnosis,
                    const std::vector<std::string>& inputs);

// For a review comment: the headline, a table, and below it each finding with
// its fix and the command that shows that it is gone.
std::string ToMarkdown(const Diagnosis& diagnosis,
                       const std::vector<std::string>& inputs);

// The rule in words: condition, thresholds and why, inputs, examples.
std::string Explain(const Rule& rule);

// The command that shows whether a finding is gone.
std::string VerifyCommand(const Rule& rule, const std::string& input);

}  // namespace lamina::findings
