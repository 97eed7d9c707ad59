// SPDX-License-Identifier: Apache-2.0
#include "compare/diff/causes.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>

#include "base/decimal.h"

namespace lamina::analysis::diff {
namespace {

constexpr size_t kNamedCauses = 10;
constexpr size_t kSaidCauses = 3;
// From here on the times are said instead of the difference in percent.
constexpr int64_t kManyTimes = 3;

std::string Percent(int64_t part, int64_t whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(std::abs(part)) /
                                     static_cast<double>(whole));
}

std::string Words(std::string_view change, char letter) {
  if (change == "only_a") return " only in A";
  if (change == "only_b") return fmt::format(" only in {}", letter);
  if (change == "other_kernel") return " with other kernels";
  if (change == "other_shape") return " with other shapes";
  if (change == "other_dtype") return " with other types";
  return {};
}

}  // namespace

std::string SignedTime(int64_t ns) {
  return (ns >= 0 ? "+" : "-") + HumanTime(std::abs(ns));
}

std::vector<Cause> FindCauses(const PairRows& rows, const Names& names,
                              const PerSide<Totals>& totals,
                              const PerSide<int64_t>& unlinked_ns) {
  absl::flat_hash_map<std::pair<StringId, Change>, size_t> ids;
  std::vector<Cause> ops;
  const auto add = [](Cause& to, const auto& from) {
    for (const size_t s : {size_t{0}, size_t{1}}) {
      to.count[s] += from.count[s];
      to.time_ns[s] += from.time_ns[s];
    }
  };
  const auto add_row = [&](Cause& to, const OpRow& row) {
    add(to, row);
    to.ops.push_back(row.id);
  };
  Cause other;
  other.name = "(other ops)";
  for (const OpRow& row : rows.ops) {
    if (row.equal()) {
      add_row(other, row);
      continue;
    }
    const auto [it, is_new] =
        ids.try_emplace(std::pair(row.op, row.change), ops.size());
    if (is_new) {
      Cause& cause = ops.emplace_back();
      cause.name = names.Text(row.op);
      cause.change = ChangeName(row.change);
    }
    add_row(ops[it->second], row);
  }
  std::stable_sort(ops.begin(), ops.end(), [](const Cause& x, const Cause& y) {
    return std::abs(x.delta_ns()) > std::abs(y.delta_ns());
  });
  for (size_t i = kNamedCauses; i < ops.size(); ++i) {
    add(other, ops[i]);
    other.ops.insert(other.ops.end(), ops[i].ops.begin(), ops[i].ops.end());
  }
  if (ops.size() > kNamedCauses) ops.resize(kNamedCauses);
  const auto rest = [&](std::string name, auto&& time) {
    Cause& cause = ops.emplace_back();
    cause.name = std::move(name);
    cause.time_ns = {time(0), time(1)};
  };
  ops.push_back(std::move(other));
  rest(std::string(kUnlinkedCause), [&](size_t s) { return unlinked_ns[s]; });
  rest("(overlap)",
       [&](size_t s) { return totals[s].busy_ns - totals[s].kernel_time_ns; });
  rest("(idle)", [&](size_t s) { return totals[s].idle_ns; });
  std::erase_if(ops, [](const Cause& cause) {
    return cause.delta_ns() == 0 && cause.count[0] == cause.count[1];
  });
  return ops;
}

std::string Verdict(const std::vector<Cause>& causes,
                    const PerSide<Totals>& totals, char letter) {
  const int64_t a = totals[0].total_ns;
  const int64_t b = totals[1].total_ns;
  if (a == 0 && b == 0) return "Neither trace has work of a device.";
  if (a == 0 || b == 0) {
    return fmt::format("Only {} has work of a device: {}.",
                       a == 0 ? letter : 'A', HumanTime(a + b));
  }
  std::string out;
  if (a == b) {
    out = fmt::format("A and {} take the same time: {}.", letter, HumanTime(a));
  } else if (b / a >= kManyTimes) {
    out = fmt::format("{} takes {} times the time of A: {} against {} ({}).",
                      letter, GroupDigits(b / a), HumanTime(b), HumanTime(a),
                      SignedTime(b - a));
  } else {
    out = fmt::format("{} takes {} {} time than A: {} against {} ({}).", letter,
                      Percent(b - a, a), b > a ? "more" : "less", HumanTime(b),
                      HumanTime(a), SignedTime(b - a));
  }
  std::vector<const Cause*> order;
  for (const Cause& cause : causes) {
    if (cause.delta_ns() != 0) order.push_back(&cause);
  }
  if (order.empty()) return out;
  std::stable_sort(order.begin(), order.end(),
                   [](const Cause* x, const Cause* y) {
                     return std::abs(x->delta_ns()) > std::abs(y->delta_ns());
                   });
  const auto said = [&](const Cause& cause) {
    if (cause.name == "(idle)") return std::string("idle time");
    if (cause.name == "(overlap)") return std::string("overlap of device work");
    if (cause.name == kUnlinkedCause)
      return std::string("device work without a launch");
    if (cause.name == "(other ops)") return std::string("other ops");
    return cause.name + Words(cause.change, letter);
  };
  int64_t left = b - a;
  for (size_t i = 0; i < order.size() && i < kSaidCauses; ++i) {
    out += fmt::format("{} {} {}", i == 0 ? "" : ",", said(*order[i]),
                       SignedTime(order[i]->delta_ns()));
    left -= order[i]->delta_ns();
  }
  if (order.size() > kSaidCauses)
    out += fmt::format(", the rest {}", SignedTime(left));
  return out + ".";
}

}  // namespace lamina::analysis::diff
