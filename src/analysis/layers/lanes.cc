// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/lanes.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>
#include <string>

#include "base/cpp_name.h"
#include "base/run_sort.h"
#include "base/text.h"
#include "trace/categories.h"

namespace lamina::analysis::layers {
namespace {

// Kernels in a row with one correlation are a graph launch from this number on,
// also where its call was not recorded.
constexpr uint32_t kMinGraph = 4;
// Characters without numbers from which on names can be alike.
constexpr size_t kMinText = 12;
// Kernels between a product, a softmax and the next product where these are
// attention written out.
constexpr size_t kNearProduct = 6;

bool HasAny(std::string_view name,
            std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return Contains(name, word);
  });
}

class Viewer {
 public:
  Viewer(const Context& context, Labels& labels, const Lane& lane)
      : context_(context),
        trace_(context.trace),
        labels_(labels),
        lane_(lane) {}

  LaneView Run() {
    const size_t n = lane_.kernels.size();
    view_.ids.reserve(n);
    view_.marks.reserve(n);
    for (const SliceId s : lane_.kernels) {
      view_.ids.push_back(trace_.slices.name[s.value].value);
      view_.like.push_back(LikeOf(view_.ids.back()));
      view_.marks.push_back(MarkOf(s));
    }
    WrittenOutNorms();
    WrittenOutAttention();
    DemoteEdges();
    Cuts();
    return std::move(view_);
  }

 private:
  // Names without their numbers, as ids.
  uint32_t LikeOf(uint32_t id) {
    const auto [it, is_new] = like_of_.try_emplace(id);
    if (!is_new) return it->second;
    std::string text = WithoutNumbers(trace_.strings[StringId(id)]);
    // Little but numbers says nothing: such names are not alike.
    if (text.size() < kMinText) {
      text = '=';
      text += trace_.strings[StringId(id)];
    }
    const auto [like, fresh] = likes_.try_emplace(
        std::move(text), static_cast<uint32_t>(likes_.size()));
    it->second = like->second;
    return it->second;
  }

  uint16_t MarkOf(SliceId s) {
    const auto family = static_cast<uint32_t>(context_.device.family(s));
    const auto [it, is_new] = mark_of_.try_emplace(
        std::pair(trace_.slices.name[s.value].value, family));
    if (is_new) it->second = FindMark(s, family);
    return it->second;
  }

  uint16_t FindMark(SliceId s, uint32_t family_index) {
    const std::string& family = context_.catalog.family(family_index).name;
    const std::string_view name = trace_.Name(s);
    const Label& label = labels_.Of(s);
    const Part part = PartOf(family);
    uint16_t mark = kNoMark;
    const bool batch_norm = HasAny(
        name, {"batch_norm", "BatchNorm", "bn_fw", "bn_bw", "batchnorm"});
    if (label.kernel.start && !batch_norm) mark |= kNormMark;
    if (part == Part::kNorm && !batch_norm) mark |= kMaybeNormMark;
    if (part == Part::kAttention) {
      const std::string_view does =
          label.type_rule == rules::PatternTable::kNone
              ? std::string_view()
              : std::string_view(
                    context_.catalog.kernel_table().rule(label.type_rule).part);
      if (does != "kv-cache" && does != "metadata" && does != "quantize")
        mark |= kAttentionMark;
      if (does == "linear-attention" || family == "ssm") mark |= kScanMark;
    }
    if (part == Part::kGemm) mark |= kGemmMark;
    if (part == Part::kMoe || family == "activation" || label.kernel.moe ||
        label.kernel.fc)
      mark |= kFeedMark;
    if (family == "embedding" || family == "sampling" || family == "loss" ||
        family == "optimizer")
      mark |= kEdgeMark;
    if (HasAny(name,
               {"bwd", "backward", "Backward", "dgrad", "wgrad", "_grad"}))
      mark |= kBackwardMark;
    if (family == "conv") {
      if (HasAny(name, {"gemm"}) && !HasAny(name, {"implicit_gemm"}))
        mark |= kGemmMark;
      else
        mark |= kConvMark;
    }
    return mark;
  }

  bool NameHas(size_t i, std::string_view word) const {
    return Contains(trace_.strings[StringId(view_.ids[i])], word);
  }

  // A norm written out in elementwise kernels begins at its square, or at the
  // cast before that.
  void WrittenOutNorms() {
    absl::flat_hash_map<uint32_t, bool> is_rsqrt;
    for (size_t i = 0; i < view_.ids.size(); ++i) {
      const auto [it, is_new] = is_rsqrt.try_emplace(view_.ids[i]);
      if (is_new) it->second = NameHas(i, "rsqrt_kernel_cuda");
      if (!it->second) continue;
      for (size_t back = 1; back <= 5 && back <= i; ++back) {
        if (!NameHas(i - back, "pow_tensor")) continue;
        size_t start = i - back;
        if (start > 0 && NameHas(start - 1, "copy")) --start;
        view_.marks[i] &= static_cast<uint16_t>(~kNormMark);
        view_.marks[start] |= kNormMark;
        break;
      }
    }
  }

  // A softmax between two products that nothing else separates is attention.
  void WrittenOutAttention() {
    std::vector<uint16_t>& marks = view_.marks;
    const size_t n = marks.size();
    absl::flat_hash_map<uint32_t, bool> softmax;
    constexpr uint16_t kOther =
        kEdgeMark | kNormMark | kFeedMark | kAttentionMark | kConvMark;
    for (size_t i = 0; i < n; ++i) {
      const auto [it, is_new] = softmax.try_emplace(view_.ids[i]);
      if (is_new) {
        it->second =
            context_.catalog.family(context_.device.family(lane_.kernels[i]))
                .name == "softmax";
      }
      if (!it->second) continue;
      const auto product = [&](bool forward) {
        for (size_t away = 1; away <= kNearProduct; ++away) {
          if (forward ? i + away >= n : i < away) return false;
          const uint16_t mark = marks[forward ? i + away : i - away];
          if ((mark & kGemmMark) != 0) return true;
          if ((mark & kOther) != 0) return false;
        }
        return false;
      };
      if (product(false) && product(true)) marks[i] |= kAttentionMark;
    }
  }

  // What stands in every layer is no sign of a new pass: gathers of a layer,
  // the top-k of its router.
  void DemoteEdges() {
    size_t mixers = 0;
    absl::flat_hash_map<uint32_t, size_t> count;
    for (size_t i = 0; i < view_.marks.size(); ++i) {
      mixers += (view_.marks[i] & kAttentionMark) != 0;
      if ((view_.marks[i] & kEdgeMark) != 0) ++count[view_.ids[i]];
    }
    for (auto& [id, n] : count) {
      const std::string_view name = trace_.strings[StringId(id)];
      if (HasAny(name, {"embedding", "ArgMax", "argmax", "sampl", "Sampl"}))
        n = 0;
    }
    for (size_t i = 0; i < view_.marks.size(); ++i) {
      if ((view_.marks[i] & kEdgeMark) != 0 &&
          10 * count[view_.ids[i]] >= 4 * std::max<size_t>(mixers, 1))
        view_.marks[i] &= static_cast<uint16_t>(~kEdgeMark);
    }
  }

  // --- cuts ---

  bool IsGraphLaunch(NodeId launch) {
    const SliceId s = context_.tree.slice(launch);
    const auto [it, is_new] =
        graph_name_.try_emplace(trace_.slices.name[s.value].value);
    if (is_new) it->second = trace::IsGraphLaunch(trace_.Name(s));
    return it->second;
  }

  // The graph launch of every kernel, 0 for none.
  std::vector<uint64_t> Launches() {
    const size_t n = lane_.kernels.size();
    std::vector<uint64_t> launches(n, 0);
    const auto correlation = [&](size_t i) {
      const trace::DeviceArgs* args = trace_.Device(lane_.kernels[i]);
      return args == nullptr ? trace::kNoInt : args->correlation;
    };
    for (size_t i = 0; i < n;) {
      const NodeId launch = context_.tree.launch(lane_.kernels[i]);
      size_t end = i + 1;
      if (launch.valid()) {
        if (!IsGraphLaunch(launch)) {
          ++i;
          continue;
        }
        while (end < n && context_.tree.launch(lane_.kernels[end]) == launch)
          ++end;
      } else {
        const int64_t own = correlation(i);
        if (own <= 0) {  // kNoInt is negative
          ++i;
          continue;
        }
        while (end < n && correlation(end) == own) ++end;
        if (end - i < kMinGraph) {
          i = end;
          continue;
        }
      }
      for (size_t k = i; k < end; ++k) launches[k] = i + 1;
      i = end;
    }
    return launches;
  }

  void Cuts() {
    const size_t n = lane_.kernels.size();
    view_.cuts.assign(n, CutBy::kNothing);
    std::vector<uint64_t> launches = Launches();
    if (AreWhole(launches)) {
      for (size_t i = 1; i < n; ++i) {
        if (launches[i] != launches[i - 1]) view_.cuts[i] = CutBy::kGraph;
      }
      view_.graphs = std::move(launches);
    } else {
      view_.graphs.assign(n, 0);
    }
    uint32_t step = UINT32_MAX;
    for (size_t i = 0; i < n; ++i) {
      const uint32_t own = context_.steps.StepOf(lane_.kernels[i]);
      if (i > 0 && own != step) view_.cuts[i] = CutBy::kStep;
      step = own;
    }
    for (size_t i = 0; i < n; ++i) {
      if (view_.cuts[i] != CutBy::kNothing) view_.marks[i] |= kCutMark;
    }
  }

  // Whether graph launches are passes, not pieces of one: pieces leave the
  // mixers, or something else in every layer, to launches between them.
  bool AreWhole(const std::vector<uint64_t>& launches) const {
    const size_t n = launches.size();
    size_t graphs = 0;
    size_t with_mixer = 0;
    size_t mixers_between = 0;
    size_t interleaved = 0;  // graph, few kernels, graph, at once
    bool mixer = false;
    uint64_t open = 0;
    size_t between = 0;
    int64_t end = INT64_MIN;
    bool near = true;
    for (size_t i = 0; i < n; ++i) {
      const bool is_mixer = (view_.marks[i] & kAttentionMark) != 0;
      near = near && (i == 0 || trace_.Start(lane_.kernels[i]) - end < 20'000);
      end = std::max(end, trace_.End(lane_.kernels[i]));
      if (launches[i] == 0) {
        mixers_between += is_mixer;
        ++between;
        if (open != 0) {
          with_mixer += mixer;
          open = 0;
        }
        continue;
      }
      if (launches[i] != open) {
        if (open != 0) with_mixer += mixer;
        ++graphs;
        interleaved += graphs > 1 && between > 0 && between <= 4 && near;
        mixer = false;
        open = launches[i];
      }
      near = true;
      between = 0;
      mixer = mixer || is_mixer;
    }
    if (open != 0) with_mixer += mixer;
    if (graphs == 0) return false;
    if (with_mixer > 0 || mixers_between > 0)
      return 2 * with_mixer >= graphs || 2 * mixers_between < graphs;
    return 2 * interleaved < graphs;
  }

  const Context& context_;
  const Trace& trace_;
  Labels& labels_;
  const Lane& lane_;
  LaneView view_;
  absl::flat_hash_map<uint32_t, uint32_t> like_of_;
  absl::flat_hash_map<std::string, uint32_t> likes_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint16_t> mark_of_;
  absl::flat_hash_map<uint32_t, bool> graph_name_;
};

}  // namespace

std::vector<Lane> MakeLanes(const Trace& trace, bool one_per_device) {
  std::map<std::pair<int64_t, uint32_t>, Lane> lanes;
  for (const SliceId s : trace.device_slices()) {
    if (trace.KindOf(s) != trace::Kind::kKernel) continue;
    const trace::DeviceArgs* args = trace.Device(s);
    const bool apart = args != nullptr && !one_per_device;
    const int64_t device = DeviceOf(trace, s);
    Lane& lane = lanes[{device, apart ? args->lane.value : 0}];
    lane.device = device;
    lane.kernels.push_back(s);
  }
  std::vector<Lane> out;
  for (auto& [key, lane] : lanes) out.push_back(std::move(lane));
  return out;
}

LaneView ViewOf(const Context& context, Labels& labels, const Lane& lane) {
  return Viewer(context, labels, lane).Run();
}

void SortByStart(const Trace& trace, std::vector<SliceId>& work) {
  RunSort(work, 1, [&](SliceId a, SliceId b) {
    return trace.Start(a) != trace.Start(b) ? trace.Start(a) < trace.Start(b)
                                            : a < b;
  });
}

int64_t DeviceOf(const Trace& trace, SliceId s) {
  const trace::DeviceArgs* args = trace.Device(s);
  return args != nullptr ? args->device : 0;
}

}  // namespace lamina::analysis::layers
