// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/stages.h"

#include <algorithm>
#include <map>
#include <re2/re2.h>

#include "analysis/layers/lanes.h"
#include "base/decimal.h"

namespace lamina::analysis::layers {
namespace {

class StageFinder {
 public:
  StageFinder(const Context& context, Labels& labels, LayerModel& model)
      : context_(context),
        trace_(context.trace),
        labels_(labels),
        model_(model) {}

  void SetStage(Pass& pass) {
    pass.stage = Stage::kNone;
    pass.evidence = "-";
    if (ReadStage(pass) || FromFrames(pass)) return;
    // Attention kernels that are used in one stage only; else the names that
    // hint at one, in a model that keeps keys and values.
    bool attention = false;
    bool prefill = false;
    bool decode = false;
    bool cache = false;
    size_t votes[kStages] = {};
    const auto& table = labels_.tables().stage;
    const auto& types = context_.catalog.kernel_table();
    for (const uint32_t l : pass.layers) {
      for (const SliceId s : model_.layers[l].work) {
        const Label& label = labels_.Of(s);
        cache = cache || (label.type_rule != rules::PatternTable::kNone &&
                          types.rule(label.type_rule).part == "kv-cache");
        if (label.stage_rule == rules::PatternTable::kNone) continue;
        attention = true;
        ++votes[static_cast<size_t>(label.kernel.vote)];
        const rules::PatternRule& found = table.rule(label.stage_rule);
        if (found.strength != "strong") continue;
        const Stage stage = StageOfName(found.value);
        prefill = prefill || stage == Stage::kPrefill;
        decode = decode || stage == Stage::kDecode;
      }
    }
    const size_t for_prefill = votes[static_cast<size_t>(Stage::kPrefill)];
    const size_t for_decode = votes[static_cast<size_t>(Stage::kDecode)];
    if (prefill || decode) {
      pass.stage = prefill && decode ? Stage::kMixed
                   : prefill         ? Stage::kPrefill
                                     : Stage::kDecode;
      pass.evidence = "attention";
    } else if (cache && for_prefill != for_decode) {
      pass.stage = for_prefill > for_decode ? Stage::kPrefill : Stage::kDecode;
      pass.evidence = "votes";
    } else if (attention) {
      pass.stage = Stage::kUnknown;
    }
  }

 private:
  // Python frames of an engine that say the stage, where the first launched
  // kernel was launched inside one.
  bool FromFrames(Pass& pass) {
    if (!frames_known_) FindFrames();
    if (frames_.empty()) return false;
    for (const uint32_t l : pass.layers) {
      for (const SliceId s : model_.layers[l].work) {
        const NodeId launch = context_.tree.launch(s);
        if (!launch.valid()) continue;
        const SliceId call = context_.tree.slice(launch);
        const auto on_track =
            frames_.find(trace_.slices.track[call.value].value);
        if (on_track == frames_.end()) return false;
        const auto after = std::upper_bound(
            on_track->second.begin(), on_track->second.end(),
            trace_.Start(call),
            [&](int64_t t, SliceId frame) { return t < trace_.Start(frame); });
        if (after == on_track->second.begin() ||
            trace_.End(*std::prev(after)) <= trace_.Start(call))
          return false;
        const bool extend =
            trace_.Name(*std::prev(after)).find("forward_extend") !=
            std::string_view::npos;
        pass.stage = extend ? Stage::kPrefill : Stage::kDecode;
        pass.evidence = "frames";
        return true;
      }
    }
    return false;
  }

  void FindFrames() {
    frames_known_ = true;
    std::vector<bool> known(trace_.strings.size());
    bool any = false;
    for (uint32_t i = 0; i < known.size(); ++i) {
      const std::string_view name = trace_.strings[StringId(i)];
      known[i] = name.find(": forward_extend") != std::string_view::npos ||
                 name.find(": forward_decode") != std::string_view::npos;
      any = any || known[i];
    }
    if (!any) return;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      if (trace_.KindOf(s) == trace::Kind::kPython &&
          known[trace_.slices.name[i].value])
        frames_[trace_.slices.track[i].value].push_back(s);
    }
    // The outermost only: a frame inside another says the same.
    for (auto& [track, frames] : frames_) {
      SortByStart(trace_, frames);
      int64_t reached = INT64_MIN;
      std::erase_if(frames, [&](SliceId s) {
        if (trace_.Start(s) < reached) return true;
        reached = trace_.End(s);
        return false;
      });
    }
  }

  const Context& context_;
  const Trace& trace_;
  Labels& labels_;  // by our own tables
  LayerModel& model_;
  bool frames_known_ = false;
  std::map<uint32_t, std::vector<SliceId>> frames_;  // by track, disjoint
};

}  // namespace

bool ReadStage(Pass& pass) {
  if (pass.annotation.empty()) return false;
  const re2::StringPiece text(pass.annotation);
  int64_t context = 0;
  int64_t generation = 0;
  int64_t tokens = 0;
  static const RE2 kVllm(
      R"(^execute_(?:(\d+)_)?context_(\d+)\((.*)\)_generation_(\d+)\(([^)]*))");
  static const RE2 kTrtllm(
      R"(^\[Executor\] _forward_step \d+: (\d+) ctx reqs, (\d+) gen reqs)");
  static const RE2 kSglang(R"(^step\[(\w+)(.*)\])");
  static const RE2 kAtom(R"(^(prefill|decode)\[)");
  std::string count, of_context, of_generation;
  std::string mode;
  std::string rest;
  if (RE2::PartialMatch(text, kVllm, &count, &context, &of_context, &generation,
                        &of_generation)) {
    // "context_2(512)": two requests of 512 tokens together.
    if (!count.empty()) {
      pass.tokens = ParseInt(count);
    } else {
      const auto of = [](const std::string& n) { return ParseInt(n); };
      if (of(of_context) && of(of_generation))
        pass.tokens = *of(of_context) + *of(of_generation);
    }
  } else if (RE2::PartialMatch(text, kTrtllm, &context, &generation)) {
  } else if (RE2::PartialMatch(text, kSglang, &mode, &rest)) {
    static const RE2 kBatch(R"(\bbs=(\d+))");
    static const RE2 kTokens(R"(\btoks=(\d+))");
    if (RE2::PartialMatch(rest, kBatch, &tokens)) pass.batch = tokens;
    if (RE2::PartialMatch(rest, kTokens, &tokens)) pass.tokens = tokens;
    pass.stage = mode == "EXTEND"   ? Stage::kPrefill
                 : mode == "DECODE" ? Stage::kDecode
                 : mode == "MIXED"  ? Stage::kMixed
                                    : Stage::kUnknown;
    pass.evidence = "annotation";
    return true;
  } else if (RE2::PartialMatch(text, kAtom, &mode)) {
    pass.stage = StageOfName(mode);
    pass.evidence = "annotation";
    return true;
  } else {
    return false;
  }
  if (context == 0 && generation == 0) return false;
  pass.batch = context + generation;
  pass.stage = context == 0      ? Stage::kDecode
               : generation == 0 ? Stage::kPrefill
                                 : Stage::kMixed;
  pass.evidence = "annotation";
  return true;
}

void FindStages(const Context& context, Labels& labels, LayerModel& model) {
  StageFinder finder(context, labels, model);
  for (Pass& pass : model.passes) finder.SetStage(pass);
}

}  // namespace lamina::analysis::layers
