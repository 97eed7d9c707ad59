// SPDX-License-Identifier: Apache-2.0
#include "engine/replay_spans.h"

#include <algorithm>

namespace lamina::engine {
namespace {

using cudagraph::Replay;
using cudagraph::Tags;

// "A/B/C" up to its d-th separator, all of it when there are fewer.
std::string_view Prefix(std::string_view path, size_t d) {
  size_t end = 0;
  for (size_t i = 0; i <= d; ++i) {
    end = path.find('/', end == 0 ? 0 : end + 1);
    if (end == std::string_view::npos) return path;
  }
  return path.substr(0, end);
}
size_t Depth(std::string_view path) {
  return path.empty() ? 0
                      : 1 + static_cast<size_t>(
                                std::count(path.begin(), path.end(), '/'));
}

}  // namespace

ReplaySpans::ReplaySpans(const trace::Trace& trace,
                         const cudagraph::Annotation& annotation, Levels levels)
    : trace_(trace), annotation_(annotation), levels_(levels) {
  for (uint32_t r = 0; r < annotation_.replays.size(); ++r) {
    const Replay& replay = annotation_.replays[r];
    for (uint32_t i = 0; i < replay.work.size(); ++i) {
      const trace::DeviceArgs* args = trace_.Device(replay.work[i]);
      work_.push_back({r, i, args != nullptr ? args->lane.value : 0});
    }
  }
  std::stable_sort(work_.begin(), work_.end(),
                   [&](const Work& a, const Work& b) {
                     if (a.stream != b.stream) return a.stream < b.stream;
                     return trace_.Start(SliceOf(a)) < trace_.Start(SliceOf(b));
                   });
}

// The end of a run of kernels from `index` on, not behind the next kernel.
template <class F>
int64_t ReplaySpans::RunEnd(size_t index, F same) const {
  int64_t end = trace_.End(SliceOf(work_[index]));
  size_t i = index;
  do {
    end = std::max(end, trace_.End(SliceOf(work_[i])));
    ++i;
  } while (i < work_.size() && Together(work_[i], work_[index]) &&
           same(TagsOf(work_[i])));
  if (i < work_.size() && work_[i].stream == work_[index].stream)
    end = std::min(end, trace_.Start(SliceOf(work_[i])));
  return end;
}

std::vector<ReplaySpans::Span> ReplaySpans::StartingAt(size_t index) const {
  std::vector<Span> spans;
  const Work& work = work_[index];
  const Tags* tags = TagsOf(work);
  if (tags == nullptr) return spans;
  const Tags* before = nullptr;
  if (index > 0 && Together(work_[index - 1], work))
    before = TagsOf(work_[index - 1]);
  const int64_t start = trace_.Start(SliceOf(work));
  const auto add = [&](Track track, std::string_view name, int64_t end,
                       std::string_view op_path) {
    if (end > start) spans.push_back({track, name, start, end, op_path});
  };
  const auto same_op = [&](const Tags* its) {
    return its != nullptr && its->op_uid == tags->op_uid && its->op == tags->op;
  };
  if (levels_.op && !tags->op.empty() && !same_op(before))
    add(Track::kOps, tags->op, RunEnd(index, same_op), tags->op_path);
  if (!levels_.module) return spans;
  const std::string_view path = tags->module;
  for (size_t d = 0; d < Depth(path); ++d) {
    const std::string_view prefix = Prefix(path, d);
    const auto within = [&](const Tags* its) {
      return its != nullptr && Depth(its->module) > d &&
             Prefix(its->module, d) == prefix;
    };
    if (within(before)) continue;
    const size_t slash = prefix.rfind('/');
    add(Track::kModules,
        slash == std::string_view::npos ? prefix : prefix.substr(slash + 1),
        RunEnd(index, within), {});
  }
  return spans;
}

}  // namespace lamina::engine
