// SPDX-License-Identifier: Apache-2.0
//
// What ops compute, as terms: mul(silu(a), b). A chain of a graph and an op of
// the table (`means:`) are brought into the same form and compared step by
// step, because names only say where to look.
//
// Views and casts between floating types vanish; x * rsqrt(mean(x^2) + eps) is
// rms(x), times a weight norm_rms(x, w). Small letters are values, w a weight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/fusion/op_table.h"
#include "graph/graph.h"

namespace lamina::fusion {

enum class Fit : uint8_t {
  kEqual,     // the same steps on the same operands
  kLayout,    // the same steps, operands packed or prepared otherwise
  kPart,      // the op computes the begin or the end of the chain
  kConflict,  // a step inside is missing or other, or the op does more
  kUnknown,   // what the op or the chain computes is not all known
};
std::string_view Name(Fit fit);

// Terms of one chain; equal terms have equal numbers.
class Meaning {
 public:
  struct Term {
    std::string step;  // empty: a value from outside
    std::vector<uint32_t> args;
    graph::NodeId value;  // from outside: the node
    bool weight = false;  // a value that is a weight
    std::string piece;    // from outside: which part of `value`; empty: all
  };

  // What nodes of a graph compute, in order of the graph.
  Meaning(const graph::Graph& graph, const std::vector<graph::NodeId>& nodes,
          const OpTable& ops);
  Meaning() = default;

  const Term& operator[](uint32_t id) const { return terms_[id]; }
  // The terms of the values that leave the chain.
  const std::vector<uint32_t>& results() const { return results_; }
  // Steps of a term, each as often as it occurs in different terms.
  std::vector<std::string> Steps(const std::vector<uint32_t>& of) const;
  // The type of the last result, when it is another than that of the values
  // that come in: a fused op gives the type that it gets.
  const std::string& result_type() const { return result_type_; }
  // An op whose variant is a keyword that the dump drops.
  bool hidden_keyword() const { return hidden_keyword_; }

  uint32_t Intern(Term term);
  uint32_t Make(std::string step, std::vector<uint32_t> args);
  // Reads "norm_rms(add(x, r), w); add(x, r)"; false when it is no term.
  bool Parse(std::string_view text);

 private:
  friend class MeaningReader;
  std::optional<uint32_t> Rotated(uint32_t cat) const;
  std::optional<uint32_t> TanhGelu(uint32_t a, uint32_t b) const;
  std::vector<Term> terms_;
  std::vector<uint32_t> results_;
  std::string result_type_;
  bool hidden_keyword_ = false;
};

struct Judged {
  Fit fit = Fit::kUnknown;
  std::string why_not;  // empty for kEqual
};
// How an op fits a chain.
Judged Compare(const Meaning& chain, const KnownOp& op);

}  // namespace lamina::fusion
