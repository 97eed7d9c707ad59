// SPDX-License-Identifier: Apache-2.0
//
// The cost models of data/costs: which op has which model, and what a call
// costs: FLOPs of the mathematical definition, every operand read once and
// every result written once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "cost/formula.h"
#include "rules/document.h"

namespace lamina::cost {

// How far a number can be trusted.
enum class Fidelity : uint8_t {
  kExact,
  kEstimated,  // with an assumption: uniform routing, one long sequence ...
};

struct Cost {
  double flops = 0;
  double bytes = 0;
  std::string_view unit;       // matrix, vector; empty: none
  std::string_view precision;  // bf16 ...; empty: none
  Fidelity fidelity = Fidelity::kExact;
  std::vector<Value> parameters;  // as Model::parameters

  // "matrix_bf16"; empty when a part is unknown.
  std::string Spec() const;
};

// Why a call has no cost.
enum class Missing : uint8_t { kNoModel, kNoShapes, kNoValue };
std::string_view MissingName(Missing missing);

struct Example {
  std::string op;
  std::string dims, types, concrete;  // as recorded
  std::string step;                   // annotation of the serving step
  std::string kernel;                 // name of its first kernel
  std::optional<double> flops;        // nothing: has no cost
  std::optional<double> bytes;
  std::string place;  // FILE:LINE
};

struct Model {
  std::string name;
  std::vector<std::string> parameters;  // names of its variables to show
  std::vector<Example> examples;

 private:
  friend class ModelSet;
  // Slots: positions of arguments first, then variables in order.
  std::vector<std::string> slots;
  std::vector<double> positions;
  std::vector<Formula> variables;
  std::vector<size_t> parameter_slots;
  std::optional<Formula> flops, bytes, type, estimate;
  std::optional<Formula> backward_flops, backward_bytes;
};

// "sglang_profiler::attention_7" without the number that the profiler wrapper
// of SGLang adds; other names as they are.
std::string_view WithoutInstance(std::string_view op);

// One op and its model.
struct OpModel {
  const Model* model = nullptr;
  std::string unit;
  std::string sheet;    // family sheet of the TraceLens layout, may be empty
  bool native = false;  // unknown to TraceLens: in lamina's tables only
  std::vector<double> positions;  // of arguments, by slot
};

class ModelSet {
 public:
  // Reads data/costs. An error in a file names file, line and column.
  static Result<std::shared_ptr<const ModelSet>> Load(
      const rules::DataSet& data);

  static Result<std::shared_ptr<const ModelSet>> FromFiles(
      const std::vector<std::shared_ptr<const rules::DataFile>>& files);

  // The model of an op by exact name; for compiled Triton kernels
  // ("triton_poi_fused_...") that of their name. Null: it has none.
  const OpModel* Find(std::string_view op) const;

  // What a call costs; with `backward` its linked backward call. All numbers
  // are finite and not negative.
  tl::expected<Cost, Missing> Evaluate(const OpModel& op, const Call& call,
                                       bool backward = false) const;
  bool HasBackward(const OpModel& op) const;

  // The aten ops in the name of a compiled Triton kernel, from the right;
  // empty when the name holds anything else.
  std::vector<std::string_view> FusedOps(std::string_view name) const;

  const std::vector<std::unique_ptr<Model>>& models() const { return models_; }
  // Names of all ops with a model, sorted.
  std::vector<std::string_view> Ops() const;

 private:
  Status ReadFormulas(const rules::DataFile& file, const rules::Node& list);
  Status ReadOps(const rules::DataFile& file, const rules::Node& list,
                 bool native);
  Status ReadGenerated(const rules::DataFile& file);
  const Model* FindModel(std::string_view name) const;
  tl::expected<Cost, Missing> EvaluateGenerated(const OpModel& op,
                                                const Call& call) const;

  std::vector<std::unique_ptr<Model>> models_;
  TextMap<OpModel> ops_;
  // Names of aten ops that compiled kernels may be made of, with the FLOPs of
  // one element.
  TextMap<double> generated_;
  std::vector<size_t> generated_lengths_;  // in words, longest first
  Model generated_model_;
  OpModel generated_op_;
};

// Examples of models that do not cost what they state; one sentence each.
std::vector<std::string> CheckExamples(const ModelSet& set);

}  // namespace lamina::cost
