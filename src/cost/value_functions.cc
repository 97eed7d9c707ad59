// SPDX-License-Identifier: Apache-2.0
//
// Functions of formulas that compute with numbers, lists and shapes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "cost/functions.h"

namespace lamina::cost {

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

}  // namespace lamina::cost
