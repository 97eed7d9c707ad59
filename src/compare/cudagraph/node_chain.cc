// SPDX-License-Identifier: Apache-2.0

#include "compare/cudagraph/node_chain.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <re2/re2.h>
#include <tuple>

#include "base/byte_source.h"
#include "base/decimal.h"
#include "compare/cudagraph/names.h"
#include "trace/module_frames.h"
#include "tree/modules.h"

namespace lamina::cudagraph {

using trace::GraphNode;
using trace::SliceId;

namespace {

// Ranges that are looked at around a node, from the inside; keeps the sweep
// linear whatever overlaps.
constexpr size_t kMostOpen = 256;

// The number of a module that is a layer: 7 of "layers_7".
int64_t LayerOf(std::string_view module) {
  static const RE2 kNumber(R"(_([0-9]{1,9})$)");
  int64_t number = -1;
  RE2::PartialMatch(re2::StringPiece(module.data(), module.size()), kNumber,
                    &number);
  return number;
}

int64_t CapturedBatch(std::string_view range) {
  static const RE2 kCapture(R"(^capture_([0-9]{1,9})_)");
  int64_t batch = -1;
  RE2::PartialMatch(re2::StringPiece(range.data(), range.size()), kCapture,
                    &batch);
  return batch;
}

}  // namespace

NodeChain::NodeChain(const trace::Trace& trace) : trace_(trace), nodes_(trace) {
  const auto& kinds = trace.slices.kind;
  has_ops_ =
      std::find(kinds.begin(), kinds.end(), trace::Kind::kOp) != kinds.end();
  for (uint32_t i = trace::RecordedSlices(trace); i < kinds.size(); ++i) {
    if (trace::IsRangeFrame(trace, SliceId(i)))
      module_ranges_.insert(trace::RangeOfFrame(trace, SliceId(i)));
  }
  // Tags of all roots at once: one sweep over each thread.
  std::vector<const GraphNode*> roots;
  for (const SliceId s : trace.device_slices()) {
    const GraphNode* root = nodes_.Root(s);
    if (root != nullptr && tags_.try_emplace(root).second)
      roots.push_back(root);
  }
  TagRoots(roots);
}

void NodeChain::TagRoots(const std::vector<const GraphNode*>& roots) {
  if (roots.empty()) return;
  std::vector<bool> wanted(trace_.tracks.size(), false);
  for (const GraphNode* root : roots) wanted[root->track.value] = true;
  struct Event {
    uint32_t track;
    int64_t start_ns;
    SliceId slice;          // invalid: a root
    const GraphNode* root;  // null: a slice
  };
  std::vector<Event> events;
  const trace::Slices& slices = trace_.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (!wanted[slices.track[i].value] || trace::IsDevice(slices.kind[i]))
      continue;
    events.push_back(
        {slices.track[i].value, slices.start_ns[i], SliceId(i), nullptr});
  }
  for (const GraphNode* root : roots)
    events.push_back({root->track.value, root->start_ns, SliceId(), root});
  std::sort(events.begin(), events.end(), [&](const Event& a, const Event& b) {
    if (a.track != b.track) return a.track < b.track;
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    // What begins together with a node is around it, the longest outside.
    if ((a.root == nullptr) != (b.root == nullptr)) return a.root == nullptr;
    if (a.root != nullptr) return a.root < b.root;
    const int64_t x = trace_.Duration(a.slice);
    const int64_t y = trace_.Duration(b.slice);
    if (x != y) return x > y;
    return trace_.Uid(a.slice) < trace_.Uid(b.slice);
  });
  std::vector<SliceId> open;
  uint32_t track = UINT32_MAX;
  for (const Event& event : events) {
    if (event.track != track) open.clear();
    track = event.track;
    // Ranges need not nest: what has ended is taken out wherever it stands.
    if (event.root != nullptr || open.size() == kMostOpen) {
      std::erase_if(open,
                    [&](SliceId s) { return trace_.End(s) <= event.start_ns; });
    }
    if (event.root == nullptr) {
      if (open.size() == kMostOpen) open.erase(open.begin());
      open.push_back(event.slice);
    } else {
      Tagged& tagged = tags_[event.root];
      tagged.tags = MakeTags(open, tagged.batch);
    }
  }
}

// `open`: from the outermost to the innermost.
Tags NodeChain::MakeTags(const std::vector<SliceId>& open,
                         int64_t& batch) const {
  Tags tags;
  for (const SliceId s : open) {
    const std::string_view name = trace_.Name(s);
    const trace::Kind kind = trace_.KindOf(s);
    const bool range = kind == trace::Kind::kAnnotation;
    if (range) {
      const int64_t own = CapturedBatch(name);
      if (own >= 0) {
        batch = own;
        continue;
      }
      if (module_ranges_.contains(s)) continue;
    }
    if (trace::IsRangeFrame(trace_, s)) AddModule(s, tags);
    if (kind != trace::Kind::kOp && (has_ops_ || !range)) continue;
    tags.op = name;
    if (!tags.op_path.empty()) tags.op_path += " > ";
    tags.op_path += name;
    tags.dims.clear();
    tags.types.clear();
    if (const trace::OpArgs* op = trace_.Op(s)) {
      if (op->dims.valid()) tags.dims = trace_.strings[op->dims];
      if (op->types.valid()) tags.types = trace_.strings[op->types];
    }
  }
  return tags;
}

// The layer is that of the outermost module that has a number.
void NodeChain::AddModule(SliceId frame, Tags& tags) const {
  const std::string_view name = tree::Modules::ShortName(trace_.Name(frame));
  if (!tags.module.empty()) tags.module += '/';
  tags.module += name;
  if (tags.layer < 0) tags.layer = LayerOf(name);
}

bool NodeChain::Apply(Replay& replay, std::vector<Segment>& segments,
                      std::vector<Match>& matches) {
  if (trace_.graph_nodes.empty()) return false;
  std::vector<const GraphNode*> of_work;
  std::vector<const GraphNode*> roots;
  for (const SliceId s : replay.work) {
    of_work.push_back(nodes_.Root(s));
    if (of_work.back() != nullptr) roots.push_back(of_work.back());
  }
  if (roots.empty() || roots.size() * 2 < replay.work.size()) return false;
  // In the order of capture. Rows of one table: their addresses are an order
  // of the input.
  std::sort(
      roots.begin(), roots.end(), [](const GraphNode* a, const GraphNode* b) {
        return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a < b;
      });
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  const auto [it, is_new] =
      known_.try_emplace(roots, static_cast<uint32_t>(segments.size()));
  if (is_new) {
    Segment segment;
    segment.file = Segment::kOwnTrace;
    segment.number = captures_++;
    for (const GraphNode* root : roots) {
      const Tagged& tagged = tags_.at(root);
      segment.launches.push_back(tagged.tags);
      if (tagged.batch >= 0) segment.batch = tagged.batch;
    }
    segments.push_back(std::move(segment));
  }
  absl::flat_hash_map<const GraphNode*, uint32_t> places;
  for (uint32_t i = 0; i < roots.size(); ++i) places.emplace(roots[i], i);
  replay.segment = static_cast<int32_t>(it->second);
  matches.assign(replay.work.size(), Match());
  for (size_t i = 0; i < of_work.size(); ++i) {
    if (of_work[i] != nullptr)
      matches[i] = {places.at(of_work[i]), Level::kExactId};
  }
  return true;
}

namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{1} << 30;

std::string TextOf(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// "file:line:function" as traces write it: "file(line): function".
std::string Frame(std::string_view text) {
  const size_t last = text.rfind(':');
  if (last == std::string_view::npos || last == 0) return std::string(text);
  const size_t middle = text.rfind(':', last - 1);
  if (middle == std::string_view::npos ||
      !ParseInt(text.substr(middle + 1, last - middle - 1)))
    return std::string(text);
  return std::string(text.substr(0, middle)) + "(" +
         std::string(text.substr(middle + 1, last - middle - 1)) +
         "): " + std::string(text.substr(last + 1));
}

// The innermost frame that is not of a framework, else the innermost.
std::string LineOf(std::string_view stack) {
  std::string first;
  while (!stack.empty()) {
    const size_t end = std::min(stack.find('\n'), stack.size());
    std::string frame = Frame(stack.substr(0, end));
    stack.remove_prefix(std::min(end + 1, stack.size()));
    if (frame.empty()) continue;
    if (!IsFrameworkFrame(frame)) return frame;
    if (first.empty()) first = std::move(frame);
  }
  return first;
}

void AddRange(std::string& ranges, const std::string& text) {
  if (text.empty()) return;
  if (!ranges.empty()) ranges += ", ";
  ranges += text;
}

Tags TagsOf(const json& value) {
  Tags tags;
  if (value.is_string()) {
    tags.line = LineOf(value.get_ref<const std::string&>());
    return tags;
  }
  const auto add = [&](const json& entry) {
    if (entry.is_object()) {
      for (const auto& [key, own] : entry.items()) {
        const bool plain = key == "name" || key == "str" || key == "label";
        AddRange(tags.ranges, plain ? TextOf(own) : key + "=" + TextOf(own));
      }
    } else {
      AddRange(tags.ranges, TextOf(entry));
    }
  };
  if (value.is_array()) {
    for (const json& entry : value) add(entry);
  } else {
    add(value);
  }
  return tags;
}

}  // namespace

Result<NodeTags> NodeTags::Read(const std::string& path) {
  LAMINA_ASSIGN(const std::string text, ReadAll(path, kMaxBytes));
  if (!text.empty() && text[0] == '\x80') {
    return Fail(InputError(path, "a pickle is a program and is not loaded",
                           "give the annotations as JSON"));
  }
  NodeTags out;
  if (text.empty()) return out;
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) {
    return Fail(InputError(path, "expected a JSON object: node id -> tags",
                           "give the file that PyTorch wrote beside the "
                           "trace"));
  }
  for (const auto& [key, value] : document.items()) {
    const auto id = ParseInt(key);
    if (!id) {
      return Fail(InputError(
          path, "expected a node id, found '" + key.substr(0, 40) + "'",
          "give the file that PyTorch wrote beside the "
          "trace"));
    }
    out.tags_.insert_or_assign(*id, TagsOf(value));
  }
  return out;
}

namespace {

// The tags of the kernels of a replay, null where there are none, by the form
// of the id that finds more; empty when none finds any.
std::vector<const Tags*> HitsOf(const trace::Trace& trace,
                                const NodeTags& node_tags,
                                const Replay& replay) {
  std::vector<const Tags*> hits[2];
  size_t counts[2] = {};
  for (const trace::SliceId s : replay.work) {
    const trace::DeviceArgs* args = trace.Device(s);
    const Tags* found[2] = {};
    if (args != nullptr && args->graph_node_id > 0) {
      found[0] = node_tags.Find(args->graph_node_id);
      if (args->graph_id >= 0 && args->graph_id <= INT32_MAX &&
          args->graph_node_id <= UINT32_MAX) {
        found[1] = node_tags.Find(args->graph_id * (int64_t{1} << 32) +
                                  args->graph_node_id);
      }
    }
    for (size_t form = 0; form < 2; ++form) {
      hits[form].push_back(found[form]);
      counts[form] += found[form] != nullptr;
    }
  }
  const size_t best = counts[1] > counts[0] ? 1 : 0;
  return counts[best] > 0 ? std::move(hits[best]) : std::vector<const Tags*>();
}

}  // namespace

void NodeTags::Apply(const trace::Trace& trace, Annotation& annotation) const {
  if (tags_.empty()) return;
  // Replays of one graph share alignment and segment.
  using Key = std::tuple<uint32_t, int32_t, std::vector<const Tags*>>;
  std::map<Key, std::pair<uint32_t, int32_t>> known;
  for (Replay& replay : annotation.replays) {
    std::vector<const Tags*> hits = HitsOf(trace, *this, replay);
    if (hits.empty()) continue;
    const auto [it, is_new] =
        known.try_emplace(Key(replay.alignment, replay.segment, hits),
                          static_cast<uint32_t>(annotation.alignments.size()),
                          static_cast<int32_t>(annotation.segments.size()));
    if (is_new) {
      // The chosen segment with one launch more for each hit.
      Segment segment;
      segment.file = Segment::kOwnTrace;
      if (replay.segment >= 0)
        segment = annotation.segments[static_cast<size_t>(replay.segment)];
      std::vector<Match> matches = annotation.MatchesOf(replay);
      for (size_t i = 0; i < matches.size(); ++i) {
        if (hits[i] == nullptr) continue;
        Tags tags;
        if (ConfidenceOf(matches[i].level) == Confidence::kFact)
          tags = segment.launches[matches[i].partner];
        if (!hits[i]->ranges.empty()) tags.ranges = hits[i]->ranges;
        if (!hits[i]->line.empty()) tags.line = hits[i]->line;
        matches[i] = {static_cast<uint32_t>(segment.launches.size()),
                      Level::kExactId};
        segment.launches.push_back(std::move(tags));
      }
      annotation.alignments.push_back(std::move(matches));
      annotation.segments.push_back(std::move(segment));
    }
    std::tie(replay.alignment, replay.segment) = it->second;
  }
}

const Tags* NodeTags::Find(int64_t id) const {
  const auto it = tags_.find(id);
  return it == tags_.end() ? nullptr : &it->second;
}

}  // namespace lamina::cudagraph
