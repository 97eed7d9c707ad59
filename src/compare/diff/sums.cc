// SPDX-License-Identifier: Apache-2.0

#include "compare/diff/sums.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>

#include "base/decimal.h"
#include "trace/categories.h"

namespace lamina::analysis::diff {

namespace {

// Rows in the order of their first use.
class SumRows {
 public:
  SumRows(std::string_view dimension, const Side& a, const Side& b)
      : dimension_(dimension), traces_{&a.trace(), &b.trace()} {
    for (const size_t s : {size_t{0}, size_t{1}})
      out_.row_of[s].assign(traces_[s]->device.size(), kNone);
  }

  size_t Of(std::string_view key) {
    const auto [it, is_new] = ids_.try_emplace(key, out_.rows.size());
    if (is_new) {
      Sum& row = out_.rows.emplace_back();
      row.id = static_cast<uint32_t>(it->second);
      row.dimension = dimension_;
      row.key = key;
    }
    return it->second;
  }
  void Add(size_t row, size_t side, SliceId slice) {
    const Trace& trace = *traces_[side];
    ++out_.rows[row].count[side];
    out_.rows[row].time_ns[side] += trace.Duration(slice);
    out_.row_of[side][trace.slices.detail[slice.value]] =
        static_cast<uint32_t>(row);
  }
  Dimension Take() { return std::move(out_); }

 private:
  std::string_view dimension_;
  PerSide<const Trace*> traces_;
  Dimension out_;
  TextMap<size_t> ids_;
};

constexpr size_t kNoEntry = ~size_t{0};

}  // namespace

Dimension SumByCategory(const Side& a, const Side& b) {
  SumRows rows("category", a, b);
  for (const size_t s : {size_t{0}, size_t{1}}) {
    const Side& side = s == 0 ? a : b;
    const Context& context = side.context();
    std::vector<size_t> row_of(context.catalog.families().size(), kNoEntry);
    for (const SliceId slice : context.trace.device_slices()) {
      size_t& row = row_of[context.device.family(slice)];
      if (row == kNoEntry) {
        row =
            rows.Of(context.catalog.family(context.device.family(slice)).name);
      }
      rows.Add(row, s, slice);
    }
  }
  return rows.Take();
}

Dimension SumByModule(const Side& a, const Side& b, const Matching& matching,
                      const Names& names) {
  if (a.context().modules.empty() && b.context().modules.empty()) return {};
  SumRows rows("module", a, b);
  for (const size_t s : {size_t{0}, size_t{1}}) {
    const Side& side = s == 0 ? a : b;
    for (uint32_t i = 0; i < side.entries().size(); ++i) {
      if (side.Work(i).empty()) continue;
      StringId module;
      if (s == 1 && matching.partner_b[i] != kNone)
        module = a.Module(matching.partner_b[i]);
      if (!module.valid() || module == StringPool::kEmpty)
        module = side.Module(i);
      const size_t row = rows.Of(
          module == StringPool::kEmpty ? "(outside)" : names.Text(module));
      for (const SliceId slice : side.Work(i)) rows.Add(row, s, slice);
    }
    for (const SliceId slice : side.trace().device_slices()) {
      if (!side.context().tree.launch(slice).valid())
        rows.Add(rows.Of("(unlinked)"), s, slice);
    }
  }
  return rows.Take();
}

Dimension SumByLayer(const Side& a, const Side& b, const layers::Rules& rules) {
  SumRows rows("layer", a, b);
  for (const size_t s : {size_t{0}, size_t{1}}) {
    const Context& context = (s == 0 ? a : b).context();
    const layers::LayerModel model = layers::FindLayers(context, rules, {});
    if (model.layers.empty()) return {};
    const auto add = [&](std::string_view key,
                         const std::vector<SliceId>& work) {
      const size_t row = rows.Of(key);
      for (const SliceId slice : work) rows.Add(row, s, slice);
    };
    for (const layers::Layer& layer : model.layers) {
      add(model.stacks[layer.stack].name + " " + std::to_string(layer.index),
          layer.work);
    }
    for (const layers::Pass& pass : model.passes)
      add("(outside of layers)", pass.outside);
    add("(in no pass)", model.no_pass);
  }
  return rows.Take();
}

Dimension SumByTimeline(const Timeline& a, const Timeline& b) {
  Dimension out;
  const auto add = [&](std::string_view key, int64_t Timeline::*part) {
    Sum sum;
    sum.dimension = "timeline";
    sum.key = key;
    sum.time_ns = {a.*part, b.*part};
    out.rows.push_back(std::move(sum));
  };
  add("computation_time", &Timeline::computation_ns);
  add("exposed_comm_time", &Timeline::exposed_communication_ns);
  add("exposed_memcpy_time", &Timeline::exposed_copies_ns);
  add("idle_time", &Timeline::idle_ns);
  add("total_time", &Timeline::total_ns);
  return out;
}

std::vector<Calls> SumCalls(const Side& a, const Side& b) {
  std::vector<Calls> out;
  TextMap<size_t> ids;
  for (const size_t s : {size_t{0}, size_t{1}}) {
    const Side& side = s == 0 ? a : b;
    const tree::Tree& tree = side.context().tree;
    // By name of the trace.
    std::vector<size_t> row_of(side.trace().strings.size(), kNoEntry);
    const trace::Slices& slices = side.trace().slices;
    for (uint32_t i = 0; i < slices.size(); ++i) {
      const SliceId slice(i);
      if (!trace::IsApiCall(slices.kind[i])) continue;
      size_t& row = row_of[slices.name[i].value];
      if (row == kNoEntry) {
        const std::string name = NormalApiName(side.trace().Name(slice));
        const auto [it, is_new] = ids.try_emplace(name, out.size());
        if (is_new) out.emplace_back().call = name;
        row = it->second;
      }
      Calls& calls = out[row];
      ++calls.count[s];
      calls.host_ns[s] += slices.dur_ns[i];
      const NodeId node = tree.node(slice);
      if (node.valid())
        calls.launched[s] +=
            static_cast<int64_t>(tree.OwnDeviceWork(node).size());
    }
  }
  return out;
}

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
  if (change == "other_dtype") return " with other element types";
  return {};
}

}  // namespace

// What a graph replays, and what has no launch, is known by its kernels.
static void NameKernels(const PairRows& rows, const Names& names,
                        std::vector<Cause>& causes) {
  for (Cause& cause : causes) {
    const bool unlinked = cause.name == kUnlinkedCause;
    if (!unlinked && !trace::IsGraphLaunch(cause.name)) continue;
    int64_t most = 0;
    for (const KernelRow& row : rows.kernels) {
      const std::string_view op = names.Text(row.op);
      if (unlinked ? !op.empty() : op != cause.name) continue;
      const int64_t delta =
          cause.delta_ns() < 0 ? -row.delta_ns() : row.delta_ns();
      if (delta <= most) continue;
      most = delta;
      cause.kernel =
          names.Text(row.kernel[1].valid() ? row.kernel[1] : row.kernel[0]);
    }
  }
}

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
  NameKernels(rows, names, ops);
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
    const std::string kernel =
        cause.kernel.empty() ? "" : fmt::format(" (most in {})", cause.kernel);
    if (cause.name == kUnlinkedCause)
      return "device work without a launch" + kernel;
    if (!kernel.empty()) return "replayed graphs" + kernel;
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
