// SPDX-License-Identifier: Apache-2.0
//
// Why this file is long: every known layout of a snapshot is told apart here,
// and nowhere else.
#include "memory/record_maker.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::memory {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 47;
constexpr int64_t kMaxDevice = 4096;
constexpr uint64_t kMaxEvents = (uint64_t{1} << 31) - 2;
constexpr size_t kMostName = 80;

// Known keys; their ids in the pool of strings follow the empty string.
enum Key : uint32_t {
  kAction,
  kAddr,
  kSizeKey,
  kStream,
  kFrames,
  kTimeUs,
  kCompileContext,
  kUserMetadata,
  kPoolId,
  kCategory,
  kDeviceFree,
  kName,
  kFilename,
  kLine,
  kAddress,
  kRequestedSize,
  kState,
  kHistory,
  kRealSize,
  kDevice,
  kTotalSize,
  kAllocatedSize,
  kActiveSize,
  kSegmentType,
  kSegmentPoolId,
  kIsExpandable,
  kBlocks,
  kStage,
  kKeys
};
constexpr std::array<std::string_view, kKeys> kKeyNames = {"action",
                                                           "addr",
                                                           "size",
                                                           "stream",
                                                           "frames",
                                                           "time_us",
                                                           "compile_context",
                                                           "user_metadata",
                                                           "pool_id",
                                                           "category",
                                                           "device_free",
                                                           "name",
                                                           "filename",
                                                           "line",
                                                           "address",
                                                           "requested_size",
                                                           "state",
                                                           "history",
                                                           "real_size",
                                                           "device",
                                                           "total_size",
                                                           "allocated_size",
                                                           "active_size",
                                                           "segment_type",
                                                           "segment_pool_id",
                                                           "is_expandable",
                                                           "blocks",
                                                           "stage"};

constexpr std::string_view kRecordHint =
    "give a snapshot that torch.cuda.memory._dump_snapshot wrote";

// Keys of records that are there and mean nothing for us.
bool IsKnownExtra(std::string_view key) {
  return key == "max_frames" || key == "user_data" || key == "global_seq" ||
         key == "mempool_id" || key == "device" || key == "stack" ||
         key == "owner_private_pool_id" || key == "registration_counter";
}

}  // namespace

// The known keys of one dictionary.
struct RecordMaker::Fields {
  std::array<Value, kKeys> values{};
  uint64_t present = 0;
  std::string fx;

  bool Has(Key key) const { return (present >> key & 1) != 0; }
  Value operator[](Key key) const { return values[key]; }
};

RecordMaker::RecordMaker(Heap* heap, Snapshot* out) : heap_(*heap), out_(*out) {
  for (const std::string_view key : kKeyNames) out_.strings.Intern(key);
  out_.tags.emplace_back();
  tags_.emplace(Tag(), 0);
}

std::optional<int64_t> RecordMaker::Int(Value value) const {
  if (!value.Is(Kind::kInt) && !value.Is(Kind::kBigInt)) return std::nullopt;
  return heap_.Int(value);
}

int64_t RecordMaker::IntOr(Value value, int64_t missing) const {
  return Int(value).value_or(missing);
}

StringId RecordMaker::Text(Value value) const {
  return value.Is(Kind::kText)
             ? StringId(static_cast<uint32_t>(value.payload()))
             : StringPool::kEmpty;
}

uint32_t RecordMaker::Stack(Value value) const {
  const Value row = heap_.Resolve(value);
  return row.Is(Kind::kStack) ? static_cast<uint32_t>(row.payload()) : 0;
}

void RecordMaker::Pool(Value value, int64_t* pool, bool* present) const {
  std::span<const Value> items;
  if (value.Is(Kind::kTuple)) {
    items = heap_.Tuple(value);
  } else if (value.Is(Kind::kList) && heap_.Resolve(value).Is(Kind::kList)) {
    items = heap_.Items(value);
  }
  if (items.size() != 2) return;
  pool[0] = IntOr(items[0], 0);
  pool[1] = IntOr(items[1], 0);
  *present = true;
}

void RecordMaker::Consume(Value value, uint64_t offset) {
  if (!value.IsContainer() || heap_.IsClosed(value)) return;
  const Value row =
      value.Is(Kind::kDict) ? FromDict(value, offset) : FromList(value);
  if (row.IsContainer())
    heap_.Close(value);
  else
    heap_.Replace(value, row);
}

Value RecordMaker::FromList(Value list) {
  const std::span<const Value> items = heap_.Items(list);
  if (items.empty()) return list;
  // Nearly all lists are stacks; a list is one if its first item is a frame.
  if (!heap_.Resolve(items[0]).Is(Kind::kFrame)) return list;
  uint32_t few[256];
  std::vector<uint32_t> many;
  uint32_t* frames = few;
  if (items.size() > std::size(few)) {
    many.resize(items.size());
    frames = many.data();
  }
  size_t count = 0;
  for (const Value item : items) {
    const Value row = heap_.Resolve(item);
    if (row.Is(Kind::kFrame))
      frames[count++] = static_cast<uint32_t>(row.payload());
  }
  return Value(Kind::kStack, out_.stacks.Intern({frames, count}));
}

Value RecordMaker::FromDict(Value dict, uint64_t offset) {
  const std::span<const Value> items = heap_.Items(dict);
  Fields fields;
  StringId unknown;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!items[i].Is(Kind::kText)) continue;
    const auto id = static_cast<uint32_t>(items[i].payload());
    if (id >= 1 && id <= kKeys) {
      fields.values[id - 1] = items[i + 1];
      fields.present |= uint64_t{1} << (id - 1);
      continue;
    }
    const std::string_view key = out_.strings[StringId(id)];
    if (key.starts_with("fx_") && items[i + 1].Is(Kind::kText)) {
      if (!fields.fx.empty()) fields.fx += "; ";
      fields.fx += std::string(key.substr(3)) + ": " +
                   std::string(out_.strings[Text(items[i + 1])]);
    } else if (!IsKnownExtra(key)) {
      unknown = StringId(id);
    }
  }
  Value row = dict;
  if (fields.Has(kFilename) && fields.Has(kName) && fields.Has(kLine)) {
    row = MakeFrame(fields);
  } else if (fields.Has(kAction)) {
    row = MakeEvent(fields, offset);
  } else if (fields.Has(kBlocks) && fields.Has(kAddress) &&
             fields.Has(kTotalSize)) {
    row = MakeSegment(fields, offset);
  } else if (fields.Has(kSizeKey) && fields.Has(kState)) {
    row = MakeBlock(fields, offset);
  } else if (fields.Has(kRealSize)) {
    row = MakeUse(fields);
  } else if (fields.Has(kStage) && fields.Has(kName)) {
    Annotation a;
    a.end = out_.strings[Text(fields[kStage])] == "END";
    a.name = Text(fields[kName]);
    a.device = IntOr(fields[kDevice], -1);
    a.time_us = IntOr(fields[kTimeUs], kNoTime);
    annotations_.push_back(a);
    return Value(Kind::kAnnotation, annotations_.size() - 1);
  }
  if (!row.IsContainer() && unknown.valid()) {
    const std::string key = "unknown_key";
    auto& lost = out_.lost[key];
    const std::string name(Shorten(out_.strings[unknown], kMostName));
    if (lost.what.find(name) == std::string::npos && lost.count < 100) {
      ++lost.count;
      if (!lost.first_offset) lost.first_offset = offset;
      lost.what += (lost.what.empty() ? "" : ", ") + name;
    }
  }
  return row;
}

Value RecordMaker::MakeFrame(const Fields& fields) {
  Frame frame;
  frame.name = Text(fields[kName]);
  frame.file = Text(fields[kFilename]);
  const int64_t line = IntOr(fields[kLine], 0);
  frame.line = line >= 0 && line <= 0x7FFFFFFF ? static_cast<int32_t>(line) : 0;
  frame.fx =
      fields.fx.empty() ? StringPool::kEmpty : out_.strings.Intern(fields.fx);
  return Value(Kind::kFrame, out_.stacks.InternFrame(frame));
}

Value RecordMaker::MakeEvent(const Fields& fields, uint64_t offset) {
  const auto bad = [&](std::string_view what) {
    out_.Count("bad_event", offset, std::string(what));
    return Value();
  };
  if (!fields[kAction].Is(Kind::kText)) return bad("action is no text");
  const std::string_view name = out_.strings[Text(fields[kAction])];
  auto action = Action::kOther;
  if (name == "free") {  // both at once
    action = Action::kFreeCompleted;
  } else {
    for (size_t i = 0; i + 1 < kActions; ++i) {
      if (name == ActionName(static_cast<Action>(i)))
        action = static_cast<Action>(i);
    }
  }
  if (action == Action::kOther)
    out_.Count("unknown_action", offset, std::string(Shorten(name, kMostName)));
  int64_t address = IntOr(fields[kAddr], -1);
  const int64_t size = IntOr(fields[kSizeKey], -1);
  const bool placed = action != Action::kOom && action != Action::kSnapshot &&
                      action != Action::kOther;
  if (placed && address < 0) return bad("addr is missing or negative");
  if (action != Action::kOther && (size < 0 || size > kMaxSize))
    return bad("size is missing or impossible");
  if (placed && address > std::numeric_limits<int64_t>::max() - size)
    return bad("addr is impossible");
  if (action == Action::kOom)
    address = fields.Has(kDeviceFree) ? IntOr(fields[kDeviceFree], -1)
                                      : IntOr(fields[kAddr], -1);
  Tag tag;
  tag.stream = IntOr(fields[kStream], 0);
  Pool(fields[kPoolId], tag.pool, &tag.has_pool);
  tag.compile_context = Text(fields[kCompileContext]);
  tag.user_metadata = Text(fields[kUserMetadata]);
  tag.category = Text(fields[kCategory]);
  if (!(tag == last_tag_)) {
    const auto [it, added] =
        tags_.try_emplace(tag, static_cast<uint32_t>(out_.tags.size()));
    if (added) out_.tags.push_back(tag);
    last_tag_ = tag;
    last_tag_id_ = it->second;
  }
  events_.action.push_back(action);
  events_.address.push_back(address);
  events_.size.push_back(std::max<int64_t>(size, 0));
  events_.time_us.push_back(IntOr(fields[kTimeUs], kNoTime));
  events_.stack.push_back(Stack(fields[kFrames]));
  events_.tag.push_back(last_tag_id_);
  return Value(Kind::kEvent, events_.count() - 1);
}

Value RecordMaker::MakeUse(const Fields& fields) {
  uses_.push_back({IntOr(fields[kRealSize], -1), Stack(fields[kFrames])});
  return Value(Kind::kUse, uses_.size() - 1);
}

Value RecordMaker::MakeBlock(const Fields& fields, uint64_t offset) {
  Block block;
  block.address = IntOr(fields[kAddress], -1);
  block.size = IntOr(fields[kSizeKey], -1);
  block.requested = IntOr(fields[kRequestedSize], -1);
  block.stack = Stack(fields[kFrames]);
  const std::string_view state = out_.strings[Text(fields[kState])];
  const bool known = state == "active_allocated" || state == "inactive" ||
                     state == "active_pending_free" ||
                     state == "active_awaiting_free";
  if (block.size < 0 || block.size > kMaxSize || !known) {
    out_.Count("bad_block", offset, known ? "impossible size" : "state");
    return Value();
  }
  if (state == "active_allocated") {
    block.state = BlockState::kAllocated;
  } else if (state != "inactive") {
    block.state = BlockState::kPendingFree;
  }
  if (fields.Has(kHistory)) {
    history_ = true;
    const Value uses = heap_.Resolve(fields[kHistory]);
    if (uses.Is(Kind::kList) && !heap_.Items(uses).empty()) {
      const Value use = heap_.Resolve(heap_.Items(uses)[0]);
      if (use.Is(Kind::kUse)) {
        const Use& row = uses_[use.payload()];
        block.stack = row.stack;
        if (block.requested < 0) block.requested = row.size;
      }
    }
  }
  if (block.requested > block.size) {
    out_.Count("bad_block", offset, "more requested than the block has");
    block.requested = block.size;
  }
  blocks_.push_back(block);
  return Value(Kind::kBlock, blocks_.size() - 1);
}

std::string RecordMaker::Fault(Value item,
                               std::span<const std::string_view> needed,
                               const std::string& path,
                               const std::string& noun) const {
  const Value row = heap_.Resolve(item);
  if (!row.Is(Kind::kDict)) return path + " is no " + noun;
  const std::span<const Value> items = heap_.Items(row);
  size_t found = 0;
  std::string missing;
  for (const std::string_view key : needed) {
    bool there = false;
    for (size_t i = 0; i + 1 < items.size(); i += 2)
      there |= items[i].Is(Kind::kText) && out_.strings[Text(items[i])] == key;
    found += there;
    if (!there && missing.empty()) missing = key;
  }
  if (found == 0 || missing.empty()) return path + " is no " + noun;
  return path + "." + missing + " is missing";
}

Value RecordMaker::MakeSegment(const Fields& fields, uint64_t offset) {
  Segment segment;
  segment.device = IntOr(fields[kDevice], 0);
  segment.address = IntOr(fields[kAddress], -1);
  segment.size = IntOr(fields[kTotalSize], -1);
  segment.stream = IntOr(fields[kStream], 0);
  bool has_pool = false;
  Pool(fields[kSegmentPoolId], segment.pool, &has_pool);
  segment.small = out_.strings[Text(fields[kSegmentType])] == "small";
  segment.expandable = fields[kIsExpandable].Is(Kind::kBool) &&
                       fields[kIsExpandable].payload() != 0;
  segment.stack = Stack(fields[kFrames]);
  segment.stated_allocated = IntOr(fields[kAllocatedSize], -1);
  segment.stated_active = IntOr(fields[kActiveSize], -1);
  segment.stated_requested = IntOr(fields[kRequestedSize], -1);
  std::string fault;
  const Value list = heap_.Resolve(fields[kBlocks]);
  if (!list.Is(Kind::kList)) {
    fault = ".blocks is no list";
  } else if (segment.address < 0 || segment.size < 0 ||
             segment.size > kMaxSize ||
             segment.address >
                 std::numeric_limits<int64_t>::max() - segment.size) {
    fault = " has an impossible address or total_size";
  } else if (segment.device < 0 || segment.device >= kMaxDevice) {
    fault = fmt::format(": device {}", segment.device);
  } else {
    int64_t address = segment.address;
    const std::span<const Value> items = heap_.Items(list);
    for (size_t i = 0; i < items.size(); ++i) {
      const Value row = heap_.Resolve(items[i]);
      if (row.Is(Kind::kNone)) continue;  // counted as bad
      if (!row.Is(Kind::kBlock)) {
        static constexpr std::string_view kNeeded[] = {"size", "state"};
        fault =
            Fault(items[i], kNeeded, fmt::format(".blocks[{}]", i), "block");
        break;
      }
      Block block = blocks_[row.payload()];
      if (block.address < 0) block.address = address;
      if (block.address < segment.address ||
          block.address - segment.address > segment.size - block.size) {
        out_.Count("bad_block", offset, "outside of its segment");
        continue;
      }
      address = block.address + block.size;
      segment.blocks.push_back(block);
    }
  }
  std::sort(
      segment.blocks.begin(), segment.blocks.end(),
      [](const Block& a, const Block& b) { return a.address < b.address; });
  // One block cannot begin within another one.
  int64_t end = segment.address;
  std::erase_if(segment.blocks, [&](const Block& block) {
    const bool overlaps = block.address < end;
    if (overlaps)
      out_.Count("bad_block", offset, "overlaps the block before it");
    else
      end = block.address + block.size;
    return overlaps;
  });
  segments_.push_back(std::move(segment));
  segment_faults_.push_back(std::move(fault));
  return Value(Kind::kSegment, segments_.size() - 1);
}

Error RecordMaker::NoSnapshot(std::string what) const {
  return InputErrorAt(out_.file, 0, std::move(what) + ": not a memory snapshot",
                      std::string(kRecordHint));
}

Status RecordMaker::TakeSegments(Value value) {
  const Value list = heap_.Resolve(value);
  if (!list.Is(Kind::kList)) return Fail(NoSnapshot("'segments' is no list"));
  static constexpr std::string_view kNeeded[] = {"address", "total_size",
                                                 "blocks"};
  const std::span<const Value> items = heap_.Items(list);
  for (size_t i = 0; i < items.size(); ++i) {
    const Value row = heap_.Resolve(items[i]);
    const std::string path = fmt::format("segments[{}]", i);
    if (!row.Is(Kind::kSegment))
      return Fail(NoSnapshot(Fault(items[i], kNeeded, path, "segment")));
    const std::string& fault = segment_faults_[row.payload()];
    if (!fault.empty()) return Fail(NoSnapshot(path + fault));
    out_.segments.push_back(std::move(segments_[row.payload()]));
    segments_[row.payload()].blocks.clear();
  }
  return {};
}

void RecordMaker::TakeTrace(Value value, size_t device) {
  if (out_.devices.size() <= device) out_.devices.resize(device + 1);
  const Value list = heap_.Resolve(value);
  if (!list.Is(Kind::kList)) return;
  const std::span<const Value> items = heap_.Items(list);
  Events& to = out_.devices[device];
  bool all = items.size() == events_.count();
  for (size_t i = 0; all && i < items.size(); ++i) {
    const Value row = heap_.Resolve(items[i]);
    all = row.Is(Kind::kEvent) && row.payload() == i;
  }
  if (all && !items.empty()) {
    to = std::move(events_);
    events_ = Events();
    return;
  }
  for (const Value item : items) {
    const Value row = heap_.Resolve(item);
    if (row.Is(Kind::kEvent)) {
      if (row.payload() < events_.count()) to.Append(events_, row.payload());
    } else if (!row.Is(Kind::kNone)) {
      out_.Count("bad_event", 0, "no event");
    }
  }
}

Status RecordMaker::TakeTraces(Value value) {
  const Value list = heap_.Resolve(value);
  if (list.Is(Kind::kNone)) return {};
  if (!list.Is(Kind::kList))
    return Fail(NoSnapshot("'device_traces' is no list"));
  const std::span<const Value> items = heap_.Items(list);
  if (events_.count() > kMaxEvents)
    return Fail(InputErrorAt(out_.file, 0, "too many events",
                             "record fewer: max_entries of "
                             "_record_memory_history"));
  if (!items.empty() && !heap_.Resolve(items[0]).Is(Kind::kList)) {
    TakeTrace(list, 0);  // one list for one device
    return {};
  }
  if (items.size() > static_cast<size_t>(kMaxDevice))
    return Fail(NoSnapshot(fmt::format("device {}", items.size() - 1)));
  for (size_t i = 0; i < items.size(); ++i) TakeTrace(items[i], i);
  return {};
}

void RecordMaker::TakeAnnotations(Value value) {
  const Value list = heap_.Resolve(value);
  if (!list.Is(Kind::kList)) return;
  for (const Value item : heap_.Items(list)) {
    const Value row = heap_.Resolve(item);
    if (row.Is(Kind::kAnnotation))
      out_.annotations.push_back(annotations_[row.payload()]);
    else
      out_.Count("bad_annotation", 0);
  }
}

std::string RecordMaker::Render(Value value) const {
  switch (value.kind()) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.payload() != 0 ? "True" : "False";
    case Kind::kInt:
    case Kind::kBigInt:
      return std::to_string(heap_.Int(value));
    case Kind::kFloat:
      return FormatDouble(heap_.Float(value));
    case Kind::kText:
      return std::string(out_.strings[Text(value)]);
    default:
      return "...";
  }
}

void RecordMaker::TakeSettings(Value value, const std::string& prefix,
                               int depth) {
  const Value dict = heap_.Resolve(value);
  if (!dict.Is(Kind::kDict) || depth > 3) return;
  const std::span<const Value> items = heap_.Items(dict);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (out_.settings.size() >= 1000) return;
    const std::string key = prefix + Render(items[i]);
    const Value inner = heap_.Resolve(items[i + 1]);
    if (inner.Is(Kind::kDict))
      TakeSettings(inner, key + ".", depth + 1);
    else
      out_.settings.emplace_back(key, Render(inner));
  }
}

Status RecordMaker::Finish(Value root) {
  if (root.Is(Kind::kSegment) || root.Is(Kind::kEvent))
    return Fail(NoSnapshot("one record alone"));
  if (root.Is(Kind::kList)) {
    out_.layout = "segments-only";
    if (heap_.Items(root).empty()) return Fail(NoSnapshot("no key 'segments'"));
    LAMINA_TRY(TakeSegments(root));
  } else {
    Value segments, traces, settings, annotations;
    bool found = false;
    if (root.Is(Kind::kDict)) {
      const std::span<const Value> items = heap_.Items(root);
      for (size_t i = 0; i + 1 < items.size(); i += 2) {
        if (!items[i].Is(Kind::kText)) continue;
        const std::string_view key = out_.strings[Text(items[i])];
        if (key == "segments") {
          segments = items[i + 1];
          found = true;
        } else if (key == "device_traces") {
          traces = items[i + 1];
        } else if (key == "allocator_settings") {
          settings = items[i + 1];
        } else if (key == "external_annotations") {
          annotations = items[i + 1];
        } else if (key != "traces") {
          out_.Count("unknown_key", 0, std::string(Shorten(key, kMostName)));
        }
      }
    }
    if (!found) return Fail(NoSnapshot("no key 'segments'"));
    out_.layout = "snapshot";
    LAMINA_TRY(TakeSegments(segments));
    LAMINA_TRY(TakeTraces(traces));
    TakeAnnotations(annotations);
    TakeSettings(settings, "", 0);
    out_.has_settings = !out_.settings.empty();
  }
  if (history_) out_.layout = "history";
  for (Events& events : out_.devices) events.Shrink();
  return {};
}

}  // namespace lamina::memory
