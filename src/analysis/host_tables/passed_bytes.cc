// SPDX-License-Identifier: Apache-2.0
#include "analysis/host_tables/passed_bytes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "cost/arguments.h"
#include "cost/dtype.h"

namespace lamina::analysis::host_tables {
namespace {

// All pairs are looked at.
constexpr size_t kMostTensors = 64;

struct Tensor {
  std::vector<double> dims;
  double elements = 1;
  double element_bytes = 0;  // 0: not known
};

double Product(const std::vector<double>& dims) {
  double product = 1;
  for (const double d : dims) product *= d;
  return product;
}

std::vector<Tensor> InputsOf(const tree::Tree& tree, tree::NodeId op) {
  std::vector<Tensor> out;
  const trace::Trace& trace = tree.trace();
  const trace::OpArgs* const args = trace.Op(tree.slice(op));
  if (args == nullptr || !args->dims.valid()) return out;
  const auto text = [&](StringId id) {
    return id.valid() ? trace.Text(id) : std::string_view();
  };
  const auto call = cost::ParseCall(tree.name(op), text(args->dims),
                                    text(args->types), text(args->concrete));
  if (!call || !call->has_shapes) return out;
  const auto add = [&](const std::vector<double>& dims, std::string_view type) {
    if (dims.empty()) return;
    const auto known = cost::FindDType(type);
    out.push_back({dims, Product(dims), known ? known->bytes : 0});
  };
  for (const cost::Argument& argument : call->arguments) {
    // Of lists of many shapes do not tell what is passed on.
    if (out.size() + argument.list.size() > kMostTensors) return {};
    add(argument.dims, argument.type);
    for (const auto& dims : argument.list) add(dims, "");
  }
  return out;
}

// Numbers of elements that an op with these inputs may have made: as many as
// an input or as all of them together with broadcasting; a product over one
// dimension; a reduction of the last dimension.
std::set<double> Outputs(const std::vector<Tensor>& inputs) {
  std::set<double> out;
  std::vector<double> wide;
  for (const Tensor& a : inputs) {
    out.insert(a.elements);
    if (a.dims.back() > 0) out.insert(a.elements / a.dims.back());
    if (a.dims.size() > wide.size())
      wide.insert(wide.begin(), a.dims.size() - wide.size(), 1);
    for (size_t i = 0; i < a.dims.size(); ++i) {
      double& d = wide[wide.size() - a.dims.size() + i];
      d = std::max(d, a.dims[i]);
    }
    for (const Tensor& b : inputs) {
      // a[..., k] with b[..., k, n], or with b[n, k].
      if (&a == &b || a.dims.size() < 2 || b.dims.size() < 2) continue;
      const double k = a.dims.back();
      if (k <= 0) continue;
      if (b.dims[b.dims.size() - 2] == k)
        out.insert(a.elements / k * b.dims.back());
      if (b.dims.back() == k)
        out.insert(a.elements / k * b.dims[b.dims.size() - 2]);
    }
  }
  if (!wide.empty()) out.insert(Product(wide));
  return out;
}

}  // namespace

std::optional<int64_t> PassedBytes(const tree::Tree& tree,
                                   std::span<const tree::NodeId> launchers) {
  double sum = 0;
  tree::NodeId before;
  for (const tree::NodeId launcher : launchers) {
    const tree::NodeId op = tree.EnclosingOp(launcher);
    if (!op.valid() || (before.valid() && op == before)) return std::nullopt;
    if (before.valid()) {
      const std::set<double> made = Outputs(InputsOf(tree, before));
      double most = 0;
      for (const Tensor& read : InputsOf(tree, op)) {
        if (made.contains(read.elements))
          most = std::max(most, read.elements * read.element_bytes);
      }
      if (most <= 0) return std::nullopt;
      sum += most;
    }
    before = op;
  }
  constexpr double kMost = 1e18;
  return launchers.size() > 1 && sum < kMost
             ? std::optional(static_cast<int64_t>(std::llround(sum)))
             : std::nullopt;
}

}  // namespace lamina::analysis::host_tables
