// SPDX-License-Identifier: Apache-2.0

#include "cost/models.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cost/arguments.h"
#include "cost/dtype.h"

namespace lamina::cost {

namespace {

using rules::DataFile;
using rules::Node;

// Above this a number is corrupt: a thousand devices need a day for it.
constexpr double kMaxCost = 1e24;

bool Usable(const Value& value) {
  return value.is_number() && value.number() >= 0 && value.number() <= kMaxCost;
}

Result<Formula> CompileAt(const DataFile& file, const Node& node,
                          const std::vector<std::string>& names) {
  if (!node.IsScalar()) return Fail(file.ErrorAt(node, "expected a formula"));
  auto formula = Formula::Compile(node.text, names);
  if (formula) return std::move(*formula);
  // The place inside the text; a quoted scalar begins one column later, which
  // the caret shows near enough.
  Node place = node;
  place.column += static_cast<uint32_t>(formula.error().offset);
  return Fail(file.ErrorAt(place, formula.error().what, formula.error().hint));
}

}  // namespace

std::string Cost::Spec() const {
  if (unit.empty() || precision.empty()) return {};
  return std::string(unit) + "_" + std::string(precision);
}

std::string_view MissingName(Missing missing) {
  switch (missing) {
    case Missing::kNoModel:
      return "no_model";
    case Missing::kNoShapes:
      return "no_shapes";
    case Missing::kNoValue:
      return "unusable_arguments";
  }
  return "no_model";
}

Result<std::shared_ptr<const ModelSet>> ModelSet::Load(
    const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("costs"));
  return FromFiles(files);
}

Result<std::shared_ptr<const ModelSet>> ModelSet::FromFiles(
    const std::vector<std::shared_ptr<const rules::DataFile>>& files) {
  auto set = std::make_shared<ModelSet>();
  for (const auto& file : files) {
    if (const Node* list = file->root.Find("formulas"))
      LAMINA_TRY(set->ReadFormulas(*file, *list));
    if (file->root.Find("fused_ops") != nullptr)
      LAMINA_TRY(set->ReadGenerated(*file));
  }
  for (const auto& file : files) {
    if (const Node* list = file->root.Find("models"))
      LAMINA_TRY(set->ReadOps(*file, *list, false));
  }
  for (const auto& file : files) {
    if (const Node* list = file->root.Find("native"))
      LAMINA_TRY(set->ReadOps(*file, *list, true));
  }
  return std::shared_ptr<const ModelSet>(std::move(set));
}

const Model* ModelSet::FindModel(std::string_view name) const {
  for (const auto& model : models_) {
    if (model->name == name) return model.get();
  }
  return nullptr;
}

Status ModelSet::ReadFormulas(const DataFile& file, const Node& list) {
  constexpr std::string_view kKeys[] = {
      "model",          "arguments",      "let",
      "parameters",     "flops",          "bytes",
      "backward_flops", "backward_bytes", "type",
      "estimate",       "examples"};
  for (const Node& item : list.items) {
    LAMINA_ASSIGN(const auto members, rules::Members::Of(file, item, kKeys));
    auto model = std::make_unique<Model>();
    LAMINA_ASSIGN(model->name, members.Text("model"));
    if (const Node* arguments = members.Find("arguments")) {
      for (size_t i = 0; i < arguments->keys.size(); ++i) {
        model->slots.push_back(arguments->keys[i].text);
        model->positions.push_back(
            std::strtod(arguments->items[i].text.c_str(), nullptr));
      }
    }
    if (const Node* let = members.Find("let")) {
      for (size_t i = 0; i < let->keys.size(); ++i) {
        LAMINA_ASSIGN(Formula formula,
                      CompileAt(file, let->items[i], model->slots));
        model->variables.push_back(std::move(formula));
        model->slots.push_back(let->keys[i].text);
      }
    }
    const auto compile = [&](std::string_view key,
                             std::optional<Formula>& into) -> Status {
      const Node* node = members.Find(key);
      if (node == nullptr) return {};
      LAMINA_ASSIGN(into, CompileAt(file, *node, model->slots));
      return {};
    };
    LAMINA_TRY(compile("flops", model->flops));
    LAMINA_TRY(compile("bytes", model->bytes));
    LAMINA_TRY(compile("type", model->type));
    LAMINA_TRY(compile("estimate", model->estimate));
    LAMINA_TRY(compile("backward_flops", model->backward_flops));
    LAMINA_TRY(compile("backward_bytes", model->backward_bytes));
    if (!model->flops || !model->bytes)
      return Fail(members.ErrorAt("a model needs 'flops' and 'bytes'"));
    LAMINA_ASSIGN(model->parameters, members.Texts("parameters"));
    for (const std::string& name : model->parameters) {
      const auto it = std::find(model->slots.begin(), model->slots.end(), name);
      if (it == model->slots.end()) {
        return Fail(members.ErrorAt("parameter '" + name +
                                    "' is no variable of the model"));
      }
      model->parameter_slots.push_back(
          static_cast<size_t>(it - model->slots.begin()));
    }
    if (const Node* examples = members.Find("examples")) {
      constexpr std::string_view kExampleKeys[] = {"op",       "dims", "types",
                                                   "concrete", "step", "kernel",
                                                   "flops",    "bytes"};
      for (const Node& node : examples->items) {
        LAMINA_ASSIGN(const auto fields,
                      rules::Members::Of(file, node, kExampleKeys));
        Example example;
        LAMINA_ASSIGN(example.op, fields.Text("op"));
        example.dims = fields.TextOr("dims", "");
        example.types = fields.TextOr("types", "");
        example.concrete = fields.TextOr("concrete", "");
        example.step = fields.TextOr("step", "");
        example.kernel = fields.TextOr("kernel", "");
        LAMINA_ASSIGN(example.flops, fields.OptionalNumber("flops"));
        LAMINA_ASSIGN(example.bytes, fields.OptionalNumber("bytes"));
        example.place = file.name + ":" + std::to_string(node.line);
        model->examples.push_back(std::move(example));
      }
    }
    // A later file replaces a model of the same name.
    const auto old = std::find_if(
        models_.begin(), models_.end(),
        [&](const auto& other) { return other->name == model->name; });
    if (old != models_.end()) {
      *old = std::move(model);
    } else {
      models_.push_back(std::move(model));
    }
  }
  return {};
}

Status ModelSet::ReadOps(const DataFile& file, const Node& list, bool native) {
  for (const Node& item : list.items) {
    const auto text = [&](std::string_view key) {
      const Node* value = item.Find(key);
      return value != nullptr && value->IsScalar() ? value->text
                                                   : std::string();
    };
    const Node* name = item.Find("model");
    const Node* ops = item.Find("ops");
    if (name == nullptr || ops == nullptr) continue;
    OpModel op;
    op.model = FindModel(name->text);
    if (op.model == nullptr) {
      std::vector<std::string_view> names;
      for (const auto& model : models_) names.push_back(model->name);
      const std::string_view near = rules::Nearest(name->text, names);
      return Fail(file.ErrorAt(
          *name, "there is no model '" + name->text + "'",
          near.empty() ? "define it under 'formulas'"
                       : "did you mean '" + std::string(near) + "'?"));
    }
    op.unit = text("unit");
    op.sheet = text("sheet");
    op.native = native;
    op.positions = op.model->positions;
    if (const Node* arguments = item.Find("arguments")) {
      for (size_t i = 0; i < arguments->keys.size(); ++i) {
        const auto begin = op.model->slots.begin();
        const auto end =
            begin + static_cast<ptrdiff_t>(op.model->positions.size());
        const auto it = std::find(begin, end, arguments->keys[i].text);
        if (it == end) {
          return Fail(file.ErrorAt(arguments->keys[i],
                                   "model '" + op.model->name +
                                       "' has no argument '" +
                                       arguments->keys[i].text + "'"));
        }
        op.positions[static_cast<size_t>(it - begin)] =
            std::strtod(arguments->items[i].text.c_str(), nullptr);
      }
    }
    for (const Node& node : ops->items) ops_.insert_or_assign(node.text, op);
  }
  return {};
}

std::string_view WithoutInstance(std::string_view op) {
  if (!op.starts_with("sglang_profiler::")) return op;
  const size_t end = op.find_last_not_of("0123456789");
  return end + 1 < op.size() && op[end] == '_' ? op.substr(0, end) : op;
}

const OpModel* ModelSet::Find(std::string_view op) const {
  const auto it = ops_.find(WithoutInstance(op));
  if (it != ops_.end()) return &it->second;
  if (op.starts_with("triton_poi_") || op.starts_with("triton_red_") ||
      op.starts_with("triton_per_"))
    return &generated_op_;
  return nullptr;
}

std::vector<std::string_view> ModelSet::Ops() const {
  std::vector<std::string_view> names;
  for (const auto& [name, op] : ops_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

bool ModelSet::HasBackward(const OpModel& op) const {
  return op.model != nullptr && op.model->backward_flops.has_value();
}

tl::expected<Cost, Missing> ModelSet::Evaluate(const OpModel& op,
                                               const Call& call,
                                               bool backward) const {
  if (!call.has_shapes) return tl::make_unexpected(Missing::kNoShapes);
  if (&op == &generated_op_) return EvaluateGenerated(op, call);
  const Model& model = *op.model;
  Scope scope;
  scope.call = &call;
  scope.variables.reserve(model.slots.size());
  for (const double position : op.positions)
    scope.variables.emplace_back(position);
  for (const Formula& variable : model.variables)
    scope.variables.push_back(variable.Evaluate(scope));
  const Formula& flops_of = backward ? *model.backward_flops : *model.flops;
  const Formula& bytes_of =
      backward && model.backward_bytes ? *model.backward_bytes : *model.bytes;
  const Value flops = flops_of.Evaluate(scope);
  const Value bytes = bytes_of.Evaluate(scope);
  if (!Usable(flops) || !Usable(bytes))
    return tl::make_unexpected(Missing::kNoValue);
  Cost cost;
  cost.flops = flops.number();
  cost.bytes = bytes.number();
  cost.unit = op.unit;
  size_t typed = 0;
  if (model.type) {
    const Value at = model.type->Evaluate(scope);
    const auto end = static_cast<double>(call.arguments.size());
    if (at.is_number() && at.number() >= 0)
      typed = static_cast<size_t>(std::min(at.number(), end));
  }
  if (typed < call.arguments.size()) {
    if (const auto type = FindDType(call.arguments[typed].type))
      cost.precision = Precision(*type, op.unit);
  }
  if (model.estimate) {
    const Value value = model.estimate->Evaluate(scope);
    if (value.is_number() && value.number() != 0)
      cost.fidelity = Fidelity::kEstimated;
  }
  for (const size_t slot : model.parameter_slots)
    cost.parameters.push_back(scope.variables[slot]);
  return cost;
}

namespace {

// Numbers of a file are written with what digits their author liked.
bool Equal(double a, double b) {
  return a == b || std::fabs(a - b) <= 1e-12 * std::max(a, b);
}

// What is wrong with one example; empty when it holds.
std::string Problem(const ModelSet& set, const Model& model,
                    const Example& example) {
  const OpModel* op = set.Find(example.op);
  if (op == nullptr) return "'" + example.op + "' has no model";
  if (op->model != &model)
    return "'" + example.op + "' belongs to another model";
  auto call =
      ParseCall(example.op, example.dims, example.types, example.concrete);
  if (!call) return "the arguments cannot be read";
  call->step = ParseStep(example.step);
  call->kernel_element_bytes = ElementBytesOf(example.kernel);
  const auto cost = set.Evaluate(*op, *call);
  if (!cost && !example.flops) return {};
  if (!cost) return "has no cost: " + std::string(MissingName(cost.error()));
  if (!example.flops || !example.bytes) {
    return fmt::format("costs {} FLOP and {} B, expected none or one of them",
                       cost->flops, cost->bytes);
  }
  if (Equal(cost->flops, *example.flops) && Equal(cost->bytes, *example.bytes))
    return {};
  return fmt::format("costs {} FLOP and {} B, expected {} and {}", cost->flops,
                     cost->bytes, *example.flops, *example.bytes);
}

}  // namespace

std::vector<std::string> CheckExamples(const ModelSet& set) {
  std::vector<std::string> problems;
  for (const auto& model : set.models()) {
    for (const Example& example : model->examples) {
      const std::string problem = Problem(set, *model, example);
      if (!problem.empty()) {
        problems.push_back(model->name + ": the example at " + example.place +
                           " " + problem);
      }
    }
  }
  return problems;
}

// Compiled Triton kernels: "triton_<kind>_fused_<names>_<number>" says which
// ops a kernel is made of, its concrete arguments how many elements it works
// on.

namespace {

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t pos = 0; pos <= text.size();) {
    const size_t end = std::min(text.find('_', pos), text.size());
    words.push_back(text.substr(pos, end - pos));
    pos = end + 1;
  }
  return words;
}

// "triton_poi_fused_add_mul_3": the words between "fused" and the number.
std::vector<std::string_view> FusedWords(std::string_view name) {
  constexpr std::string_view kMark = "_fused_";
  const size_t mark = name.find(kMark);
  if (mark == std::string_view::npos) return {};
  std::vector<std::string_view> words = Split(name.substr(mark + kMark.size()));
  const auto number = [](std::string_view word) {
    return !word.empty() &&
           word.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (words.size() > 1 && number(words.back())) words.pop_back();
  return words;
}

std::optional<double> WholeNumber(const std::string& text) {
  if (text.empty() || text.size() > 15 ||
      text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::strtod(text.c_str(), nullptr);
}

}  // namespace

Status ModelSet::ReadGenerated(const rules::DataFile& file) {
  const rules::Node* list = file.root.Find("fused_ops");
  for (size_t i = 0; i < list->keys.size(); ++i) {
    char* end = nullptr;
    const std::string& key = list->keys[i].text;
    const double flops = std::strtod(key.c_str(), &end);
    if (end == key.c_str() || *end != 0)
      return Fail(file.ErrorAt(list->keys[i], "expected FLOPs per element"));
    for (const rules::Node& name : list->items[i].items)
      generated_.insert_or_assign(name.text, flops);
  }
  size_t longest = 1;
  for (const auto& [name, flops] : generated_)
    longest = std::max(longest, Split(name).size());
  generated_lengths_.clear();
  for (size_t n = longest; n > 0; --n) generated_lengths_.push_back(n);
  generated_model_.name = "triton";
  generated_model_.parameters = {"xnumel", "rnumel", "flops_per_element"};
  generated_op_.model = &generated_model_;
  return {};
}

std::vector<std::string_view> ModelSet::FusedOps(
    std::string_view kernel) const {
  // Cover the words by names of ops, from the right, longest first.
  const auto words = FusedWords(kernel);
  std::vector<std::string_view> names;
  bool covered = true;
  for (size_t end = words.size(); covered && end > 0;) {
    covered = false;
    for (const size_t length : generated_lengths_) {
      if (length > end) continue;
      const std::string_view& first = words[end - length];
      const std::string_view& last = words[end - 1];
      const std::string_view name(
          first.data(),
          static_cast<size_t>(last.data() + last.size() - first.data()));
      if (!generated_.contains(name)) continue;
      names.push_back(name);
      end -= length;
      covered = true;
      break;
    }
  }
  if (!covered) names.clear();
  return names;
}

tl::expected<Cost, Missing> ModelSet::EvaluateGenerated(
    const OpModel& op, const Call& call) const {
  double per_element = 0;
  for (const std::string_view name : FusedOps(call.name))
    per_element += generated_.find(name)->second;

  std::vector<double> numbers;
  double bytes = 0;
  double first_size = 0;
  for (const Argument& argument : call.arguments) {
    if (IsTensorType(argument.type)) {
      const double size = FindDType(argument.type)->bytes;
      double elements = 1;
      for (const double d : argument.dims) elements *= d;
      bytes += elements * size;
      if (first_size == 0) first_size = size;
    } else if (const auto number = WholeNumber(argument.concrete)) {
      numbers.push_back(*number);
    }
  }
  const bool pointwise = call.name.starts_with("triton_poi_");
  if (numbers.size() < (pointwise ? 1U : 2U))
    return tl::make_unexpected(Missing::kNoValue);
  const double x = pointwise ? numbers.back() : numbers[numbers.size() - 2];
  const double r = pointwise ? 1 : numbers.back();
  Cost cost;
  cost.flops = x * r * per_element;
  cost.bytes = bytes + (pointwise ? first_size * x : 0);
  cost.unit = op.unit;
  cost.fidelity = Fidelity::kEstimated;
  cost.parameters = {Value(x), Value(r), Value(per_element)};
  return cost;
}

}  // namespace lamina::cost
