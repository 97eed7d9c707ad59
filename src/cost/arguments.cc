// SPDX-License-Identifier: Apache-2.0
#include "cost/arguments.h"

#include <nlohmann/json.hpp>
#include <re2/re2.h>

namespace lamina::cost {
namespace {

using Json = nlohmann::json;

// Larger sizes are corrupt; products of a few of them stay exact enough.
constexpr double kMaxDim = 281474976710656.0;  // 2^48

bool ReadDims(const Json& json, std::vector<double>& dims) {
  for (const Json& item : json) {
    if (!item.is_number()) return false;
    const double value = item.get<double>();
    if (!(value >= 0 && value <= kMaxDim)) return false;
    dims.push_back(value);
  }
  return true;
}

// Older recordings write the tuple "(2, 2)" where others have "[2, 2]".
std::string Concrete(std::string text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return text;
  text.front() = '[';
  text.back() = ']';
  if (text[text.size() - 2] == ',') text.erase(text.size() - 2, 1);
  return text;
}

std::string TextOf(const Json& json) {
  return json.is_string() ? json.get<std::string>() : json.dump();
}

// A JSON list, or an empty one for empty text.
std::optional<Json> ParseList(std::string_view text) {
  if (text.empty()) return Json::array();
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_array()) return std::nullopt;
  return json;
}

}  // namespace

std::optional<Call> ParseCall(std::string_view name, std::string_view dims,
                              std::string_view types,
                              std::string_view concrete) {
  const auto dims_list = ParseList(dims);
  const auto types_list = ParseList(types);
  const auto concrete_list = ParseList(concrete);
  if (!dims_list || !types_list || !concrete_list) return std::nullopt;
  Call call;
  call.name = name;
  call.has_shapes = !dims.empty();
  const size_t count =
      std::max({dims_list->size(), types_list->size(), concrete_list->size()});
  call.arguments.resize(count);
  for (size_t i = 0; i < dims_list->size(); ++i) {
    const Json& item = (*dims_list)[i];
    Argument& argument = call.arguments[i];
    if (!item.is_array()) return std::nullopt;
    if (!item.empty() && item[0].is_array()) {
      argument.is_list = true;
      for (const Json& tensor : item) {
        argument.list.emplace_back();
        if (!tensor.is_array() || !ReadDims(tensor, argument.list.back()))
          return std::nullopt;
      }
    } else if (!ReadDims(item, argument.dims)) {
      return std::nullopt;
    }
  }
  for (size_t i = 0; i < types_list->size(); ++i) {
    const Json& item = (*types_list)[i];
    // A list of tensors with their types: that of the first.
    call.arguments[i].type =
        TextOf(item.is_array() && !item.empty() ? item[0] : item);
  }
  for (size_t i = 0; i < concrete_list->size(); ++i)
    call.arguments[i].concrete = Concrete(TextOf((*concrete_list)[i]));
  return call;
}

std::optional<StepFacts> ParseStep(std::string_view annotation) {
  static const RE2 kForm(
      R"(execute_\d+_context_(\d+)\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\))"
      R"(_generation_(\d+)\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\))");
  StepFacts f;
  double context = 0;
  double generation = 0;
  if (!RE2::PartialMatch(re2::StringPiece(annotation.data(), annotation.size()),
                         kForm, &context, &f.context_sq, &f.context_sk,
                         &f.context_sqsq, &f.context_sqsk, &generation,
                         &f.generation_sq, &f.generation_sk, &f.generation_sqsq,
                         &f.generation_sqsk)) {
    return std::nullopt;
  }
  f.requests = context + generation;
  return f;
}

double ElementBytesOf(std::string_view kernel) {
  const size_t at = kernel.find("OpaqueType<");
  if (at != std::string_view::npos) {
    double size = 0;
    for (size_t i = at + 11;
         i < kernel.size() && kernel[i] >= '0' && kernel[i] <= '9' && size < 64;
         ++i)
      size = size * 10 + (kernel[i] - '0');
    return size <= 16 ? size : 0;
  }
  struct Word {
    std::string_view text;
    double bytes;
  };
  for (const Word word :
       {Word{"BFloat16", 2}, Word{"Half", 2}, Word{"<float", 4},
        Word{"<double", 8}, Word{"<long", 8}, Word{"<int", 4}}) {
    if (kernel.find(word.text) != std::string_view::npos) return word.bytes;
  }
  return 0;
}

}  // namespace lamina::cost
