// SPDX-License-Identifier: Apache-2.0
//
// Functions of formulas that look at the call: its arguments, its name, the
// step it is in.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cost/dtype.h"
#include "cost/functions.h"

namespace lamina::cost {
namespace {

using Arguments = std::vector<Value>;

const Argument* Find(const Scope& scope, const Value& index) {
  if (!index.is_number() || index.number() < 0) return nullptr;
  const auto at = static_cast<size_t>(index.number());
  const auto& arguments = scope.call->arguments;
  return at < arguments.size() ? &arguments[at] : nullptr;
}

Value Dims(const Scope& scope, const Arguments& a, std::string_view) {
  const Argument* argument = Find(scope, a[0]);
  if (argument == nullptr || !scope.call->has_shapes) return {};
  if (a.size() == 2) {
    if (!a[1].is_number() || a[1].number() < 0) return {};
    const auto at = static_cast<size_t>(a[1].number());
    if (at >= argument->list.size()) return {};
    return Value(argument->list[at]);
  }
  if (argument->is_list) return {};
  return Value(argument->dims);
}

// Elements of an argument; of all tensors of a list.
Value Elements(const Scope& scope, const Arguments& a, std::string_view) {
  const Argument* argument = Find(scope, a[0]);
  if (argument == nullptr || !scope.call->has_shapes) return {};
  if (!argument->is_list) return Product(argument->dims);
  double sum = 0;
  for (const auto& tensor : argument->list) sum += Product(tensor);
  return sum;
}

Value Size(const Scope& scope, const Arguments& a, std::string_view) {
  const Argument* argument = Find(scope, a[0]);
  if (argument == nullptr) return {};
  const auto type = FindDType(argument->type);
  return type ? Value(type->bytes) : Value();
}

Value IsTensor(const Scope& scope, const Arguments& a, std::string_view) {
  const Argument* argument = Find(scope, a[0]);
  return argument != nullptr && IsTensorType(argument->type) ? 1.0 : 0.0;
}

Value Count(const Scope& scope, const Arguments& a, std::string_view) {
  const Argument* argument = Find(scope, a[0]);
  if (argument == nullptr) return 0.0;
  return static_cast<double>(argument->list.size());
}

// A number or a Python bool, spaces around it allowed.
std::optional<double> ReadNumber(std::string text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(' ') - begin + 1);
  if (text == "True" || text == "true") return 1.0;
  if (text == "False" || text == "false") return 0.0;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != 0 || !std::isfinite(value))
    return std::nullopt;
  return value;
}

Value Concrete(const Scope& scope, const Arguments& a, std::string_view) {
  const Argument* argument = Find(scope, a[0]);
  if (argument == nullptr) return {};
  const std::string& text = argument->concrete;
  if (text.empty()) return {};
  if (text[0] == '[') {
    std::vector<double> values;
    for (size_t pos = 1; pos < text.size() && text[pos] != ']';) {
      const size_t end = text.find_first_of(",]", pos);
      if (end == std::string::npos) return {};
      const auto item = ReadNumber(text.substr(pos, end - pos));
      if (!item) return {};
      values.push_back(*item);
      pos = text[end] == ',' ? end + 1 : end;
    }
    return Value(std::move(values));
  }
  const auto number = ReadNumber(text);
  return number ? Value(*number) : Value();
}

Value Named(const Scope& scope, const Arguments&, std::string_view text) {
  return scope.call->name == text ? 1.0 : 0.0;
}

// The name holds a word.
Value NameHas(const Scope& scope, const Arguments&, std::string_view text) {
  return scope.call->name.find(text) != std::string_view::npos ? 1.0 : 0.0;
}

Value InPlace(const Scope& scope, const Arguments&, std::string_view) {
  return scope.call->name.ends_with('_') ? 1.0 : 0.0;
}

Value IsInteger(const Scope& scope, const Arguments& a, std::string_view) {
  const Argument* argument = Find(scope, a[0]);
  if (argument == nullptr) return 0.0;
  const auto type = FindDType(argument->type);
  if (!type || type->name == "scalar") return 0.0;
  const std::string_view name = type->name;
  return name.starts_with("int") || name.starts_with("uint") || name == "bool"
             ? 1.0
             : 0.0;
}

// Bytes per element of what two operands are promoted to: the wider, as
// TraceLens has it, but a Python number (recorded as double or long int without
// dimensions) gives way to a tensor; a Python float makes integers float32.
Value Promoted(const Scope& scope, const Arguments& a, std::string_view) {
  const Argument* x = Find(scope, a[0]);
  const Argument* y = Find(scope, a[1]);
  const auto type_of = [](const Argument* argument) {
    return argument != nullptr && IsTensorType(argument->type)
               ? FindDType(argument->type)
               : std::nullopt;
  };
  const auto s = type_of(x);
  const auto t = type_of(y);
  if (!s || !t) return s ? Value(s->bytes) : t ? Value(t->bytes) : Value();
  const auto whole = [](const DType& type) {
    return !type.name.starts_with("fp") && type.name != "bf16" &&
           !type.name.starts_with("complex");
  };
  const auto beside_number = [&](const DType& tensor, const DType& number) {
    return whole(tensor) && !whole(number) ? 4.0 : tensor.bytes;
  };
  const auto is_number = [](const Argument* argument, const DType& type) {
    return argument->dims.empty() &&
           (type.name == "fp64" || type.name == "int64");
  };
  if (is_number(x, *s) && !y->dims.empty()) return beside_number(*t, *s);
  if (is_number(y, *t) && !x->dims.empty()) return beside_number(*s, *t);
  return std::max(s->bytes, t->bytes);
}

Value ArgumentCount(const Scope& scope, const Arguments&, std::string_view) {
  return static_cast<double>(scope.call->arguments.size());
}

Value KernelElementBytes(const Scope& scope, const Arguments&,
                         std::string_view) {
  return scope.call->kernel_element_bytes > 0
             ? Value(scope.call->kernel_element_bytes)
             : Value();
}

// Position of the first argument from `a[0]` on whose concrete value is a
// list or a whole number (no bool).
Value FirstDims(const Scope& scope, const Arguments& a, std::string_view t) {
  if (!a[0].is_number()) return {};
  const auto& arguments = scope.call->arguments;
  for (auto i = static_cast<size_t>(a[0].number()); i < arguments.size(); ++i) {
    const std::string& text = arguments[i].concrete;
    if (text.empty() || text == "True" || text == "False") continue;
    Value value = Concrete(scope, {Value(static_cast<double>(i))}, t);
    if (value.is_list() ||
        (value.is_number() && value.number() == std::floor(value.number()) &&
         text.find('.') == std::string::npos))
      return value;
  }
  return {};
}

// Bytes of all tensors from argument a to b (default: all), lists with the
// element size of the kernel.
Value TensorBytes(const Scope& scope, const Arguments& a, std::string_view) {
  const auto& arguments = scope.call->arguments;
  size_t from = 0;
  size_t to = arguments.size();
  if (!a.empty()) {
    if (!a[0].is_number()) return {};
    from = static_cast<size_t>(std::max(0.0, a[0].number()));
  }
  if (a.size() > 1) {
    if (!a[1].is_number()) return {};
    to = std::min(to, static_cast<size_t>(std::max(0.0, a[1].number())));
  }
  double sum = 0;
  for (size_t i = from; i < to; ++i) {
    const Argument& argument = arguments[i];
    if (argument.is_list) {
      auto type = FindDType(argument.type);
      const double size = type ? type->bytes : scope.call->kernel_element_bytes;
      if (size <= 0) return {};
      for (const auto& tensor : argument.list) sum += Product(tensor) * size;
    } else if (IsTensorType(argument.type)) {
      sum += Product(argument.dims) * FindDType(argument.type)->bytes;
    }
  }
  return sum;
}

// Position of the n-th (from 0) tensor argument with at least `rank`
// dimensions.
Value NthTensor(const Scope& scope, const Arguments& a, std::string_view) {
  if (!a[0].is_number() || !a[1].is_number()) return {};
  double left = a[0].number();
  const auto& arguments = scope.call->arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!IsTensorType(arguments[i].type) ||
        static_cast<double>(arguments[i].dims.size()) < a[1].number())
      continue;
    if (left-- == 0) return static_cast<double>(i);
  }
  return {};
}

Value MaxElements(const Scope& scope, const Arguments&, std::string_view) {
  double most = 0;
  for (const Argument& argument : scope.call->arguments) {
    if (!argument.dims.empty()) most = std::max(most, Product(argument.dims));
  }
  return most;
}

template <double StepFacts::*Member>
Value Fact(const Scope& scope, const Arguments&, std::string_view) {
  return scope.call->step ? Value((*scope.call->step).*Member) : Value();
}

}  // namespace

std::vector<Function> CallFunctions() {
  return {
      {"dims", 1, 2, "Shape of argument i; of tensor j of a list.", &Dims},
      {"n", 1, 1, "Elements of argument i; of a list, of all its tensors.",
       &Elements},
      {"size", 1, 1, "Bytes per element of argument i.", &Size},
      {"tensor", 1, 1, "1 if argument i is a tensor, else 0.", &IsTensor},
      {"integer", 1, 1, "1 if argument i is a tensor of integers or bools.",
       &IsInteger},
      {"promoted", 2, 2,
       "Bytes per element of what arguments i and j are promoted to.",
       &Promoted},
      {"count", 1, 1, "Tensors in the list that argument i is.", &Count},
      {"value", 1, 1, "Concrete argument i: number, 0 or 1, or list.",
       &Concrete},
      {"arguments", 0, 0, "Number of arguments.", &ArgumentCount},
      {"in_place", 0, 0, "1 if the op's name ends in an underscore.", &InPlace},
      {"named", 1, 1, "1 if the op has this name.", &Named, true},
      {"name_has", 1, 1, "1 if the op's name holds this text.", &NameHas, true},
      {"kernel_element_bytes", 0, 0,
       "Element size that the kernel's name tells.", &KernelElementBytes},
      {"tensor_bytes", 0, 2, "Bytes of all tensors among arguments a to b-1.",
       &TensorBytes},
      {"nth_tensor", 2, 2,
       "Position of the k-th tensor argument with at least r dimensions.",
       &NthTensor},
      {"max_elements", 0, 0, "Elements of the largest argument.", &MaxElements},
      {"first_dims", 1, 1,
       "First concrete list or whole number from argument i on.", &FirstDims},
      {"context_sq", 0, 0, "Sum of query lengths of the step's prefills.",
       &Fact<&StepFacts::context_sq>},
      {"context_sk", 0, 0, "Sum of key lengths of the step's prefills.",
       &Fact<&StepFacts::context_sk>},
      {"context_sqsq", 0, 0, "Sum of squared query lengths of the prefills.",
       &Fact<&StepFacts::context_sqsq>},
      {"context_sqsk", 0, 0, "Sum of query x key lengths of the prefills.",
       &Fact<&StepFacts::context_sqsk>},
      {"generation_sq", 0, 0, "Sum of query lengths of the step's decodes.",
       &Fact<&StepFacts::generation_sq>},
      {"generation_sk", 0, 0, "Sum of key lengths of the step's decodes.",
       &Fact<&StepFacts::generation_sk>},
      {"generation_sqsk", 0, 0, "Sum of query x key lengths of the decodes.",
       &Fact<&StepFacts::generation_sqsk>},
      {"requests", 0, 0, "Requests of the step.", &Fact<&StepFacts::requests>},
  };
}

}  // namespace lamina::cost
