// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/node_tags.h"

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/byte_source.h"
#include "base/decimal.h"
#include "compare/cudagraph/calls.h"

namespace lamina::cudagraph {
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
