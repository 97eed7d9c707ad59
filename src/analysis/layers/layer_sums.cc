// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/layer_sums.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "analysis/common/launchers.h"

namespace lamina::analysis::layers {
namespace {

// What the kernels of a layer are.
struct Markers {
  bool part[kParts] = {};
  bool moe = false, mla = false, gdn = false, ssm = false;
  // A product, a softmax and a product: attention that no kernel is named for.
  bool written_out = false;

  bool has(Part p) const { return part[static_cast<size_t>(p)]; }
};

std::string TypeOf(const Markers& marks) {
  const bool moe = marks.moe || marks.has(Part::kMoe);
  const bool gemm = marks.has(Part::kGemm);
  if (!marks.has(Part::kAttention)) {
    if (moe) return "MOE";  // its router may be a softmax
    return marks.written_out ? "MHA_FC" : gemm ? "FC" : "BLOCK";
  }
  const std::string kind = marks.mla   ? "MLA"
                           : marks.gdn ? "GDN"
                           : marks.ssm ? "SSM"
                                       : "MHA";
  return moe ? kind + "_MOE" : gemm ? kind + "_FC" : "ATTN";
}

// The variants of a stack in its first pass, with how often each repeats.
std::string PatternOf(const LayerModel& model, uint32_t stack) {
  std::vector<std::pair<uint32_t, size_t>> runs;
  const Layer* first = nullptr;
  for (const Layer& layer : model.layers) {
    if (layer.stack != stack) continue;
    if (first == nullptr) first = &layer;
    if (layer.pass != first->pass) continue;
    if (runs.empty() || runs.back().first != layer.variant)
      runs.emplace_back(layer.variant, 0);
    ++runs.back().second;
  }
  std::string out;
  for (const auto& [variant, count] : runs) {
    out += (out.empty() ? "" : " ") + VariantLetter(variant);
    if (count > 1) out += std::to_string(count);
  }
  return out;
}

}  // namespace

LayerSum SumOfLayer(const Context& context, Labels& labels,
                    const Layer& layer) {
  const Trace& trace = context.trace;
  LayerSum sum;
  sum.wall_ns = WallOf(trace, layer.work);
  sum.busy_ns = UnionOf(trace, layer.work);
  Markers marks;
  const HostSigns signs = labels.HostSignsOf(layer);
  const auto says = [&](HostSign sign) {
    return ((signs.modules | signs.ops) & sign) != 0;
  };
  marks.moe = says(kHostMoe);
  marks.mla = says(kHostMla);
  marks.gdn = says(kHostGdn);
  marks.ssm = says(kHostSsm);
  marks.part[static_cast<size_t>(Part::kAttention)] = says(kHostAttention);
  sum.type_by = signs.modules != 0 ? "module"
                : signs.ops != 0   ? "op"
                                   : "kernel";
  bool product = false;
  bool softmax = false;  // behind a product
  for (const SliceId s : layer.work) {
    const auto part = static_cast<size_t>(PartOf(context, s));
    if (static_cast<Part>(part) == Part::kGemm) {
      marks.written_out = marks.written_out || softmax;
      product = true;
    } else if (context.catalog.family(context.device.family(s)).name ==
               "softmax") {
      softmax = softmax || product;
    }
    const ClassicKernel& kernel = labels.Of(s).kernel;
    sum.kernel_ns += trace.Duration(s);
    sum.parts[part] += trace.Duration(s);
    marks.part[part] = true;
    marks.moe = marks.moe || kernel.moe;
    marks.mla = marks.mla || kernel.mla;
    marks.gdn = marks.gdn || kernel.gdn;
    marks.ssm = marks.ssm || labels.Of(s).ssm;
  }
  sum.type = layer.type.empty() ? TypeOf(marks) : layer.type;
  return sum;
}

std::vector<std::string> ModulesAbove(const LayerModel& model) {
  const auto parent = [](std::string_view of) {
    const size_t slash = of.rfind('/');
    return slash == of.npos ? std::string_view() : of.substr(0, slash);
  };
  std::vector<std::optional<std::string_view>> above(model.stacks.size());
  for (const Layer& layer : model.layers) {
    if (layer.stack >= above.size()) continue;
    const std::string_view path = layer.module;
    std::optional<std::string_view>& common = above[layer.stack];
    if (!common) common = parent(path);
    const auto is_above = [&] {
      return path.starts_with(*common) && path.size() > common->size() &&
             path[common->size()] == '/';
    };
    while (!common->empty() && !is_above()) common = parent(*common);
  }
  std::vector<std::string> out;
  for (const auto& common : above) out.emplace_back(common.value_or(""));
  return out;
}

StackSum SumOfStack(const LayerModel& model, std::span<const LayerSum> layers,
                    uint32_t index) {
  StackSum sum;
  std::map<uint32_t, size_t> per_pass;
  size_t exact = 0;
  int64_t known_ns = 0;  // of what layers of a network are made of
  for (size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    if (layer.stack != index) continue;
    ++sum.layers;
    exact += layer.exact;
    sum.ns += layers[l].kernel_ns;
    const auto& parts = layers[l].parts;
    for (int p = 0; p < kParts; ++p) {
      const auto part = static_cast<Part>(p);
      if (part != Part::kOther && part != Part::kCommunication)
        known_ns += parts[static_cast<size_t>(p)];
    }
    ++per_pass[layer.pass];
  }
  if (sum.layers == 0) return sum;
  sum.pattern = PatternOf(model, index);
  sum.passes = per_pass.size();
  std::set<size_t, std::greater<>> sizes;
  for (const auto& [pass, size] : per_pass) sizes.insert(size);
  for (const size_t size : sizes)
    sum.per_pass += (sum.per_pass.empty() ? "" : ", ") + std::to_string(size);
  sum.exactness = static_cast<double>(exact) / static_cast<double>(sum.layers);
  const size_t spread = *sizes.begin() - *sizes.rbegin();
  // In a damaged sequence a few layers that happen to be exact prove little.
  const auto all_exact = std::ranges::count_if(
      model.layers, [](const Layer& layer) { return layer.exact; });
  const bool clean =
      10 * static_cast<size_t>(all_exact) >= 9 * model.layers.size();
  const StackInfo& stack = model.stacks[index];
  // A loop of kernels of which nothing is known is any program's loop.
  sum.confidence = stack.by_names || known_ns == 0                ? "low"
                   : stack.boundary == "module"                   ? "certain"
                   : sum.exactness >= 0.9 && spread == 0 && clean ? "high"
                   : sum.exactness >= 0.5 || spread <= 1          ? "medium"
                                                                  : "low";
  return sum;
}

int64_t WallOf(const Trace& trace, const std::vector<SliceId>& work) {
  int64_t end = trace.End(work.front());
  for (const SliceId s : work) end = std::max(end, trace.End(s));
  return end - trace.Start(work.front());
}

std::string VariantLetter(uint32_t variant) {
  std::string out;
  for (uint32_t v = variant;; v = v / 26 - 1) {
    out.insert(out.begin(), static_cast<char>('A' + v % 26));
    if (v < 26) break;
  }
  return out;
}

}  // namespace lamina::analysis::layers
