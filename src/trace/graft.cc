// SPDX-License-Identifier: Apache-2.0
#include "trace/graft.h"

#include <algorithm>

#include "base/status.h"
#include "trace/segment.h"

namespace lamina::trace {

Grafter::Grafter(Trace& trace) : trace_(trace) {
  Captured& captured = trace_.captured;
  if (captured.first == kNoRow)
    captured.first = static_cast<uint32_t>(trace_.slices.size());
  captured.calls.resize(trace_.device.size());
  captured.facts.resize(trace_.device.size());
  for (const uint32_t uid : trace_.slices.uid)
    next_uid_ = std::max(next_uid_, uid + 1);
}

void Grafter::From(const Trace& capture) {
  capture_ = &capture;
  strings_.assign(capture.strings.size(), StringId());
  categories_.assign(capture.categories.size(), -1);
}

bool Grafter::HasRoom(size_t slices) const {
  return trace_.captured.parents.size() + slices <= kMaxSlices &&
         uint64_t{next_uid_} + slices < kNoRow &&
         trace_.slices.size() + slices < SliceId::kNone;
}

StringId Grafter::Map(StringId id) {
  if (!id.valid()) return id;
  StringId& own = strings_[id.value];
  if (!own.valid()) own = trace_.strings.Intern(capture_->strings[id]);
  return own;
}

uint8_t Grafter::MapCategory(uint8_t category) {
  int& own = categories_[category];
  if (own < 0) own = CategoryIndex(Map(capture_->categories[category]));
  return static_cast<uint8_t>(own);
}

// The index is a byte: as in the builder, all categories beyond the 255th are
// the empty one.
int Grafter::CategoryIndex(StringId name) {
  auto& known = trace_.categories;
  const auto it = std::find(known.begin(), known.end(), name);
  if (it != known.end()) return static_cast<int>(it - known.begin());
  if (known.size() >= LocalNames::kNoCategory && name != StringPool::kEmpty)
    return CategoryIndex(StringPool::kEmpty);
  known.push_back(name);
  return static_cast<int>(known.size()) - 1;
}

SliceId Grafter::Add(SliceId captured, SliceId launch, SliceId parent) {
  const Trace& from = *capture_;
  const Kind kind = from.KindOf(captured);
  uint32_t detail = kNoRow;
  if (const OpArgs* op = from.Op(captured)) {
    OpArgs args;
    args.dims = Map(op->dims);
    args.types = Map(op->types);
    args.strides = Map(op->strides);
    args.concrete = Map(op->concrete);
    detail = static_cast<uint32_t>(trace_.ops.size());
    trace_.ops.push_back(args);
  } else if (const ApiArgs* api = from.Api(captured)) {
    // No correlation: its numbers are those of another recording.
    ApiArgs args;
    args.kernel = Map(api->kernel);
    detail = static_cast<uint32_t>(trace_.api_calls.size());
    trace_.api_calls.push_back(args);
  } else {
    LAMINA_CHECK(IsHostTree(kind));
  }
  Slices& to = trace_.slices;
  const SliceId added(static_cast<uint32_t>(to.size()));
  to.push_back({.start_ns = trace_.Start(launch),
                .dur_ns = trace_.Duration(launch),
                .name = Map(from.slices.name[captured.value]),
                .kind = kind,
                .category = MapCategory(from.slices.category[captured.value]),
                .track = to.track[launch.value],
                .uid = next_uid_++,
                .offset = to.offset[launch.value],
                .detail = detail});
  trace_.captured.parents.push_back(parent.valid() ? parent : launch);
  return added;
}

void Grafter::Link(SliceId device, SliceId call, bool fact) {
  const uint32_t row = trace_.slices.detail[device.value];
  trace_.captured.calls[row] = call;
  trace_.captured.facts[row] = fact;
}

}  // namespace lamina::trace
