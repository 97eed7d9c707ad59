// SPDX-License-Identifier: Apache-2.0
//
// All functions of the formula language: those that compute with numbers, lists
// and shapes, and those that look at the call (its arguments, its name, the
// step it is in).

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include "cost/dtype.h"
#include "cost/formula.h"

namespace lamina::cost {

// Of the call: arguments, name, step.
std::vector<Function> CallFunctions();
// Of numbers, lists and shapes.
std::vector<Function> ValueFunctions();

double Product(const std::vector<double>& list);

double Product(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), 1.0, std::multiplies<>());
}

namespace {

using Arguments = std::vector<Value>;

Value Given(const Scope&, const Arguments& a, std::string_view) {
  return a[0].known() ? 1.0 : 0.0;
}

template <class F>
Value OnList(const Value& value, F f) {
  return value.is_list() ? Value(f(value.list())) : Value();
}

Value Prod(const Scope&, const Arguments& a, std::string_view) {
  return OnList(a[0], Product);
}
Value Sum(const Scope&, const Arguments& a, std::string_view) {
  return OnList(a[0], [](const std::vector<double>& list) {
    return std::accumulate(list.begin(), list.end(), 0.0);
  });
}
Value Len(const Scope&, const Arguments& a, std::string_view) {
  return OnList(a[0], [](const std::vector<double>& list) {
    return static_cast<double>(list.size());
  });
}

// Of two or more numbers, or of one list.
template <class F>
Value Fold(const Arguments& a, F f) {
  std::vector<double> all;
  for (const Value& value : a) {
    if (value.is_list()) {
      all.insert(all.end(), value.list().begin(), value.list().end());
    } else if (value.is_number()) {
      all.push_back(value.number());
    } else {
      return {};
    }
  }
  if (all.empty()) return {};
  double out = all[0];
  for (const double x : all) out = f(out, x);
  return out;
}
Value Min(const Scope&, const Arguments& a, std::string_view) {
  return Fold(a, [](double x, double y) { return std::min(x, y); });
}
Value Max(const Scope&, const Arguments& a, std::string_view) {
  return Fold(a, [](double x, double y) { return std::max(x, y); });
}

double Ceil(double x) { return std::ceil(x); }
double Floor(double x) { return std::floor(x); }
template <double (*F)(double)>
Value Round(const Scope&, const Arguments& a, std::string_view) {
  return a[0].is_number() ? Value(F(a[0].number())) : Value();
}
Value Log2(const Scope&, const Arguments& a, std::string_view) {
  return a[0].is_number() && a[0].number() > 0 ? Value(std::log2(a[0].number()))
                                               : Value();
}
Value Power(const Scope&, const Arguments& a, std::string_view) {
  if (!a[0].is_number() || !a[1].is_number()) return {};
  const double value = std::pow(a[0].number(), a[1].number());
  return std::isfinite(value) ? Value(value) : Value();
}

// Shape of an elementwise result (NumPy's rule).
Value Broadcast(const Scope&, const Arguments& a, std::string_view) {
  if (!a[0].is_list() || !a[1].is_list()) return {};
  std::vector<double> x = a[0].list();
  std::vector<double> y = a[1].list();
  if (x.size() < y.size()) std::swap(x, y);
  for (size_t i = 0; i < y.size(); ++i) {
    double& left = x[x.size() - 1 - i];
    const double right = y[y.size() - 1 - i];
    if (left == 1) {
      left = right;
    } else if (right != 1 && right != left) {
      return {};
    }
  }
  return Value(std::move(x));
}

// A list of one, or a number, stands for all `n` dimensions.
std::optional<std::vector<double>> Spread(const Value& value, size_t n) {
  if (value.is_number()) return std::vector<double>(n, value.number());
  if (!value.is_list() || value.list().empty()) return std::nullopt;
  if (value.list().size() == 1) return std::vector<double>(n, value.list()[0]);
  if (value.list().size() != n) return std::nullopt;
  return value.list();
}

// Shape of a convolution's result; the formulas of torch.nn.ConvNd and
// ConvTransposeNd.
Value ConvolutionShape(const Scope&, const Arguments& a, std::string_view) {
  if (!a[0].is_list() || !a[1].is_list()) return {};
  const auto& x = a[0].list();
  const auto& w = a[1].list();
  if (x.size() < 3 || x.size() != w.size()) return {};
  const size_t n = x.size() - 2;
  const auto stride = Spread(a[2], n);
  const auto padding = Spread(a[3], n);
  const auto dilation = Spread(a[4], n);
  const auto output_padding = Spread(a[6], n);
  if (!stride || !padding || !dilation || !output_padding ||
      !a[5].is_number() || !a[7].is_number())
    return {};
  const bool transposed = a[5].number() != 0;
  std::vector<double> out = {x[0], transposed ? w[1] * a[7].number() : w[0]};
  for (size_t i = 0; i < n; ++i) {
    const double reach = (*dilation)[i] * (w[i + 2] - 1);
    const double s = (*stride)[i];
    if (s <= 0) return {};
    const double size =
        transposed
            ? (x[i + 2] - 1) * s - 2 * (*padding)[i] + reach +
                  (*output_padding)[i] + 1
            : std::floor((x[i + 2] + 2 * (*padding)[i] - reach - 1) / s) + 1;
    if (size < 0) return {};
    out.push_back(size);
  }
  return Value(std::move(out));
}

// (query, key) pairs under a causal mask. Square: n^2 / 2 by convention (the
// exact n (n + 1) / 2 is larger by 1 / n). Otherwise query i sees the keys up
// to i (aligned top left), or up to i + keys - queries (bottom right).
Value CausalPairs(const Scope&, const Arguments& a, std::string_view) {
  if (!a[0].is_number() || !a[1].is_number() || !a[2].is_number()) return {};
  const double q = a[0].number();
  const double k = a[1].number();
  if (q == k) return q * k / 2;
  if (a[2].number() != 0) {
    // Sum over i in [0, q) of max(0, k - q + i + 1).
    const double first = std::max(0.0, q - k);
    const double rows = q - first;
    const double low = k - q + first + 1;
    return rows * (low + k) / 2;
  }
  // Sum over i in [0, q) of min(i + 1, k).
  const double rows = std::min(q, k);
  return rows * (rows + 1) / 2 + std::max(0.0, q - k) * k;
}

// Elements that are left of a shape when dimensions are reduced: a list, one
// number, or unknown or [] for all.
Value Reduced(const Scope&, const Arguments& a, std::string_view) {
  if (!a[0].is_list()) return {};
  const auto& shape = a[0].list();
  if (!a[1].known() || (a[1].is_list() && a[1].list().empty())) return 1.0;
  std::vector<double> dims =
      a[1].is_list() ? a[1].list() : std::vector{a[1].number()};
  const double rank = static_cast<double>(shape.size());
  std::vector<bool> gone(shape.size(), false);
  for (double d : dims) {
    if (d < 0) d += rank;
    if (shape.empty() && d == 0) continue;
    if (!(d >= 0 && d < rank)) return {};
    gone[static_cast<size_t>(d)] = true;
  }
  double left = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!gone[i]) left *= shape[i];
  }
  return left;
}

}  // namespace

std::vector<Function> ValueFunctions() {
  return {
      {"given", 1, 1, "1 if the value is known, else 0.", &Given},
      {"prod", 1, 1, "Product of a list.", &Prod},
      {"sum", 1, 1, "Sum of a list.", &Sum},
      {"len", 1, 1, "Length of a list.", &Len},
      {"min", 1, 16, "Least of numbers or of a list.", &Min},
      {"max", 1, 16, "Largest of numbers or of a list.", &Max},
      {"ceil", 1, 1, "Rounded up.", &Round<Ceil>},
      {"floor", 1, 1, "Rounded down.", &Round<Floor>},
      {"log2", 1, 1, "Logarithm to base 2.", &Log2},
      {"pow", 2, 2, "pow(base, exponent).", &Power},
      {"broadcast", 2, 2, "Shape of an elementwise result.", &Broadcast},
      {"convolution_shape", 8, 8,
       "Result shape: x, w, stride, padding, dilation, transposed, output "
       "padding, groups.",
       &ConvolutionShape},
      {"causal_pairs", 3, 3,
       "Pairs under a causal mask: queries, keys, aligned bottom right.",
       &CausalPairs},
      {"reduced", 2, 2, "Elements left of a shape after reducing dims.",
       &Reduced},
  };
}

namespace {

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

namespace {

Value Unused(const Scope&, const std::vector<Value>&, std::string_view) {
  return {};
}

std::vector<Function> AllFunctions() {
  std::vector<Function> out = {
      {"if", 3, 3, "if(condition, then, else).", &Unused},
      {"first", 1, 16, "The first of its arguments that is known.", &Unused},
      {"unknown", 0, 0, "What is never known: the call has no cost.", &Unused},
  };
  for (auto list : {CallFunctions(), ValueFunctions()})
    out.insert(out.end(), list.begin(), list.end());
  return out;
}

}  // namespace

const std::vector<Function>& Functions() {
  static const std::vector<Function> kFunctions = AllFunctions();
  return kFunctions;
}

}  // namespace lamina::cost
