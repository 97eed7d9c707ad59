// SPDX-License-Identifier: Apache-2.0
//
// What a graph costs at least: kernels to launch, bytes to read and write. The
// difference of two graphs is what a rewrite saves; without measured times it
// is an estimate and says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/types.h"
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
};

// data/autodeploy/ops.yaml.
class OpTable {
 public:
  static Result<std::shared_ptr<const OpTable>> Load(
      const rules::DataSet& data);

  OpClass ClassOf(std::string_view op) const;
  // Whether an op only copies or converts: no kernel when nothing changes.
  bool MayBeFree(std::string_view op) const;
  const std::vector<KnownOp>& ops() const { return ops_; }
  const KnownOp* Find(std::string_view op) const;
  // Words of an op name or target that tell what it computes.
  const std::vector<std::pair<std::string, std::string>>& tokens() const {
    return tokens_;
  }

 private:
  struct Prefix {
    std::string text;
    OpClass op_class = OpClass::kOther;
    bool anywhere = false;  // else up to a dot boundary
  };
  std::vector<Prefix> prefixes_;
  std::vector<std::string> maybe_free_;
  std::vector<KnownOp> ops_;
  std::vector<std::pair<std::string, std::string>> tokens_;
};

// Sizes of symbolic dimensions that a dump leaves open: batch 1, 128 tokens,
// unless the user binds them. `assumed` gets the symbols that were set so.
graph::Bindings ReferenceBindings(const graph::Graph& graph,
                                  const graph::Bindings& given,
                                  std::vector<std::string>* assumed);

struct Traffic {
  size_t kernels = 0;
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
  size_t unknown = 0;  // values without a size

  int64_t bytes() const { return read_bytes + written_bytes; }
};

// Bytes of a value; nothing when it has no size.
std::optional<int64_t> BytesOf(const graph::Graph& graph, graph::NodeId id,
                               const graph::Bindings& bindings);

// What the nodes cost one by one.
Traffic Separate(const graph::Graph& graph, const OpTable& ops,
                 const std::vector<graph::NodeId>& nodes,
                 const graph::Bindings& bindings);
// What nodes save when one kernel computes what is light among them.
struct Saving {
  size_t kernels = 0;           // today
  size_t launches = 0;          // fewer launches
  int64_t bytes = 0;            // fewer bytes: values that need not be written
                                // and read, inputs that are read once
  int64_t remaining_bytes = 0;  // inputs and outputs, each once
  size_t unknown = 0;           // values without a size
};
Saving SavingOf(const graph::Graph& graph, const OpTable& ops,
                const std::vector<graph::NodeId>& nodes,
                const graph::Bindings& bindings);

// The estimate of time where nothing is measured.
inline constexpr int64_t kLaunchNs = 2500;

// The device that bytes are moved on.
struct Memory {
  double bytes_per_s = 3.35e12;  // H100 SXM
  std::string device;            // its title; empty: assumed

  // "3.35 TB/s (NVIDIA H100 SXM)", or that it is an assumption.
  std::string Text() const;
};

int64_t EstimateNs(int64_t launches, int64_t bytes, const Memory& memory);

}  // namespace lamina::fusion
