// SPDX-License-Identifier: Apache-2.0
//
// Which op stands for a piece of device work, and what that op costs. Every
// linked slice that is no communication belongs to exactly one call: that of
// the outermost op above its launch whose cost is known, else the launching
// op.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/device_view.h"
#include "analysis/common/input.h"
#include "cost/device.h"
#include "cost/models.h"
#include "tree/steps.h"

namespace lamina::analysis {

struct Context;

class CostView {
 public:
  // Calls of the same op with the same arguments.
  struct Group {
    NodeId first;  // in the order of the tree
    StringId name, dims, types, concrete;
    const cost::OpModel* model = nullptr;  // null: none is known
    // The op of a compiled program; its cost comes from there, not from a
    // model.
    const trace::Instruction* instruction = nullptr;
    std::optional<cost::Cost> cost;
    cost::Missing missing = cost::Missing::kNoModel;
    bool backward = false;      // costed as the backward of its forward op
    std::string spec;           // "matrix_bf16", "matrix_tf32"; may be empty
    bool assumed_spec = false;  // fp32 product without a word on TF32
    std::vector<uint32_t> calls;
  };
  struct Call {
    NodeId node;
    uint32_t group = 0;
    uint32_t begin = 0, end = 0;  // of its work
  };

  static std::unique_ptr<CostView> Build(
      const tree::Tree& tree, const tree::Steps& steps,
      const DeviceView& device, std::shared_ptr<const cost::ModelSet> models);

  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<Call>& calls() const { return calls_; }
  std::span<const SliceId> Work(const Call& call) const {
    return {work_.data() + call.begin, work_.data() + call.end};
  }
  const cost::ModelSet& models() const { return *models_; }

 private:
  friend class CostViewBuilder;
  std::shared_ptr<const cost::ModelSet> models_;
  std::vector<Group> groups_;
  std::vector<Call> calls_;  // in the order of the tree
  std::vector<SliceId> work_;
};

// Indices of one look-up of words, those that become tokens: of a call of
// aten::embedding with a table of at least 1,000 rows. Nothing for other nodes.
std::optional<int64_t> LookedUpTokens(const tree::Tree& tree, NodeId node);

// Bytes that a formula gives, as tables hold them: those of packed types may
// end in a fraction.
int64_t WholeBytes(double bytes);

// data/costs.
struct CostModels {
  static constexpr std::string_view kFact = "cost models";
  static Result<CostModels> Of(const Input& input);

  std::shared_ptr<const cost::ModelSet> models;
};

// The device that rooflines are for; nothing when it is not known.
struct TargetDevice {
  static constexpr std::string_view kFact = "device";
  static Result<TargetDevice> Of(const Input& input);

  std::optional<cost::Device> device;
};

// The cost models and the device of a report.
struct Efficiency {
  static constexpr std::string_view kFact = "costs";
  static Result<Efficiency> Of(const Context& context);

  std::unique_ptr<CostView> costs;
  std::optional<cost::Device> device;
};

}  // namespace lamina::analysis
