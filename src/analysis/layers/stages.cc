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

namespace {

// "bs=16" in the brackets of SGLang and ATOM.
std::optional<int64_t> Field(const std::string& text, const char* name) {
  int64_t value = 0;
  const RE2 field(std::string("\\b") + name + "=(\\d+)");
  if (!RE2::PartialMatch(text, field, &value)) return std::nullopt;
  return value;
}

EngineRange ReadSglang(const std::string& mode, const std::string& text) {
  EngineRange range;
  range.batch = Field(text, "bs");
  range.tokens = Field(text, "toks");
  if (mode == "DECODE") {
    range.stage = Stage::kDecode;
    range.context_requests = range.context_tokens = 0;
    range.generating = range.batch;
    range.generating_context = Field(text, "g_sk");
  } else if (mode == "EXTEND") {
    range.stage = Stage::kPrefill;
    range.context_requests = range.batch;
    range.context_tokens = range.tokens;
    range.generating = range.generating_context = 0;
  } else if (mode == "MIXED") {
    range.stage = Stage::kMixed;
    range.context_requests = Field(text, "c");
    range.context_tokens = Field(text, "c_sq");
    range.generating = Field(text, "g");
    range.generating_context = Field(text, "g_sk");
  }
  return range;
}

EngineRange ReadAtom(const std::string& stage, const std::string& text) {
  EngineRange range;
  range.stage = StageOfName(stage);
  if (range.stage == Stage::kDecode) {
    range.context_requests = range.context_tokens = 0;
    range.generating = Field(text, "bs");
    range.generating_context = Field(text, "sk");
  } else {
    range.context_requests = Field(text, "bs");
    range.context_tokens = Field(text, "tok");
    range.generating = range.generating_context = 0;
  }
  return range;
}

// Nothing without requests.
std::optional<EngineRange> OfRequests(int64_t context, int64_t generating) {
  if (context == 0 && generating == 0) return std::nullopt;
  EngineRange range;
  range.stage = context == 0      ? Stage::kDecode
                : generating == 0 ? Stage::kPrefill
                                  : Stage::kMixed;
  range.batch = context + generating;
  range.context_requests = context;
  range.generating = generating;
  return range;
}

}  // namespace

std::optional<EngineRange> ReadRange(std::string_view name) {
  static const RE2 kVllm(
      R"(^execute_(?:(\d+)_)?context_(\d+)\((.*)\)_generation_(\d+)\(([^)]*))");
  static const RE2 kSums(R"(^sq(\d+)sk(\d+))");
  static const RE2 kTrtllm(
      R"(^\[Executor\] _forward_step \d+: (\d+) ctx reqs, (\d+) gen reqs)");
  static const RE2 kSglang(R"(^step\[(\w+)(.*)\])");
  static const RE2 kAtom(R"(^(prefill|decode)\[(.*))");
  const re2::StringPiece text(name.data(), name.size());
  int64_t context = 0, generation = 0, tokens = 0, keys = 0;
  std::string count, of_context, of_generation, mode, rest;
  if (RE2::PartialMatch(text, kVllm, &count, &context, &of_context, &generation,
                        &of_generation)) {
    auto range = OfRequests(context, generation);
    if (!range) return std::nullopt;
    // "context_2(512)": two requests of 512 tokens together.
    if (!count.empty()) {
      range->tokens = ParseInt(count);
    } else if (ParseInt(of_context) && ParseInt(of_generation)) {
      range->tokens = *ParseInt(of_context) + *ParseInt(of_generation);
    }
    range->context_tokens = RE2::PartialMatch(of_context, kSums, &tokens, &keys)
                                ? std::optional(tokens)
                                : ParseInt(of_context);
    if (RE2::PartialMatch(of_generation, kSums, &tokens, &keys))
      range->generating_context = keys;
    return range;
  }
  if (RE2::PartialMatch(text, kTrtllm, &context, &generation))
    return OfRequests(context, generation);
  if (RE2::PartialMatch(text, kSglang, &mode, &rest))
    return ReadSglang(mode, rest);
  if (RE2::PartialMatch(text, kAtom, &mode, &rest)) return ReadAtom(mode, rest);
  return std::nullopt;
}

bool ReadStage(Pass& pass) {
  const auto range = ReadRange(pass.annotation);
  if (!range) return false;
  pass.stage = range->stage;
  pass.evidence = "annotation";
  if (range->batch) pass.batch = range->batch;
  if (range->tokens) pass.tokens = range->tokens;
  return true;
}

void FindStages(const Context& context, Labels& labels, LayerModel& model) {
  StageFinder finder(context, labels, model);
  for (Pass& pass : model.passes) finder.SetStage(pass);
}

}  // namespace lamina::analysis::layers
