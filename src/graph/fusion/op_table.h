// SPDX-License-Identifier: Apache-2.0
//
// What ops are to the search for fusions: data, not code.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/document.h"

namespace lamina::fusion {

// What an op is to the search for fusions.
enum class OpClass : uint8_t {
  kHeavy,  // matrix product, attention, experts, collective
  kLight,  // element-wise, casts, norms, softmax, copies
  kView,   // no kernel
  kHost,   // sizes and other values on the host
  kOther,  // not known: nothing is fused across it
};
std::string_view Name(OpClass op_class);

// An op that a source tree offers.
struct KnownOp {
  std::string op;
  std::string kind;
  std::string source;    // file; may be empty
  std::string evidence;  // seen or inferred
  // What it computes, as meaning.h writes it: results with semicolons between,
  // one text per variant. Empty: unknown.
  std::vector<std::string> means;
  // Its tensors in order, by the letters of `means`; "a|b": halves of one.
  std::vector<std::string> takes;
  // What must be prepared for it that a chain of ops has otherwise.
  std::string needs;
};

// An op that reads of a table only the rows it is asked for: an embedding, the
// angles of a rotary embedding.
struct Lookup {
  std::string op;
  size_t table = 0;            // which input, from 0
  std::optional<size_t> rows;  // the input that names the rows; else as many
                               // bytes are read as the result holds
};

// data/autodeploy/ops.yaml.
class OpTable {
 public:
  static Result<std::shared_ptr<const OpTable>> Load(
      const rules::DataSet& data);

  OpClass ClassOf(std::string_view op) const;
  // Whether an op only copies or converts: no kernel when nothing changes.
  bool MayBeFree(std::string_view op) const;
  // Whether an op is one kernel, or one call of a library, already.
  bool IsFused(std::string_view op) const;
  const std::vector<KnownOp>& ops() const { return ops_; }
  const KnownOp* Find(std::string_view op) const;
  const Lookup* FindLookup(std::string_view op) const;
  // Words of an op name or target that tell what it computes.
  const std::vector<std::pair<std::string, std::string>>& tokens() const {
    return tokens_;
  }

 private:
  Result<void> Read(const rules::DataFile& file);

  struct Prefix {
    std::string text;
    OpClass op_class = OpClass::kOther;
    bool anywhere = false;  // else up to a dot boundary
  };
  std::vector<Prefix> prefixes_;
  std::vector<std::string> maybe_free_;
  std::vector<std::string> fused_;  // parts of names
  std::vector<KnownOp> ops_;
  std::vector<Lookup> lookups_;
  std::vector<std::pair<std::string, std::string>> tokens_;
};

}  // namespace lamina::fusion
