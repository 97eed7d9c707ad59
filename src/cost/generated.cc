// SPDX-License-Identifier: Apache-2.0
//
// Compiled Triton kernels: "triton_<kind>_fused_<names>_<number>" says which
// ops a kernel is made of, its concrete arguments how many elements it works
// on.
#include <algorithm>

#include "cost/dtype.h"
#include "cost/models.h"

namespace lamina::cost {
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
