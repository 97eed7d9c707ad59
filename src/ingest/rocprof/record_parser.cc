// SPDX-License-Identifier: Apache-2.0
//
// One record is an object of numbers, some of them in objects of their own
// ("grid_size": {"x": ...}). A walk over its tokens puts each number into its
// field by its key and the key of the object around it.
#include "ingest/rocprof/record_parser.h"

#include <absl/container/flat_hash_map.h>
#include <array>

#include "base/decimal.h"
#include "base/json/members.h"
#include "base/text.h"
#include "ingest/common/json_records.h"
#include "ingest/common/rocm.h"

namespace lamina::ingest::rocprof {
namespace {

using json::Tokens;
using trace::kNoInt;

// Fields of a record; the order is free.
enum Field : uint8_t {
  kStart,
  kEnd,
  kThread,
  kKind,
  kOperation,
  kCorrelation,
  kAgent,
  kQueue,
  kStream,
  kKernel,
  kGroupBytes,
  kWorkgroupX,
  kWorkgroupY,
  kWorkgroupZ,
  kGridX,
  kGridY,
  kGridZ,
  kSourceAgent,
  kTargetAgent,
  kBytes,
  kAllocated,
  kAddress,
  kFields,
  // Objects around numbers.
  kInCorrelation,
  kInAgent,
  kInQueue,
  kInStream,
  kInSourceAgent,
  kInTargetAgent,
  kInWorkgroup,
  kInGrid,
  kInAddress,
  kInDispatch,
  kOther,
};

Field FieldOf(std::string_view key) {
  static const absl::flat_hash_map<std::string_view, Field> kKeys = {
      {"start_timestamp", kStart},
      {"end_timestamp", kEnd},
      {"thread_id", kThread},
      {"kind", kKind},
      {"operation", kOperation},
      {"kernel_id", kKernel},
      {"group_segment_size", kGroupBytes},
      {"bytes", kBytes},
      {"allocation_size", kAllocated},
      {"correlation_id", kInCorrelation},
      {"agent_id", kInAgent},
      {"queue_id", kInQueue},
      {"stream_id", kInStream},
      {"src_agent_id", kInSourceAgent},
      {"dst_agent_id", kInTargetAgent},
      {"workgroup_size", kInWorkgroup},
      {"grid_size", kInGrid},
      {"address", kInAddress},
      {"dispatch_info", kInDispatch}};
  const auto it = kKeys.find(key);
  return it == kKeys.end() ? kOther : it->second;
}

// A number with the key `key` inside the object `around`.
Field Member(Field around, std::string_view key) {
  switch (around) {
    case kInCorrelation:
      return key == "internal" ? kCorrelation : kOther;
    case kInAgent:
      return key == "handle" ? kAgent : kOther;
    case kInQueue:
      return key == "handle" ? kQueue : kOther;
    case kInStream:
      return key == "handle" ? kStream : kOther;
    case kInSourceAgent:
      return key == "handle" ? kSourceAgent : kOther;
    case kInTargetAgent:
      return key == "handle" ? kTargetAgent : kOther;
    case kInAddress:
      return key == "handle" ? kAddress : kOther;
    case kInWorkgroup:
    case kInGrid: {
      if (key.size() != 1 || key[0] < 'x' || key[0] > 'z') return kOther;
      const int first = around == kInGrid ? kGridX : kWorkgroupX;
      return static_cast<Field>(first + (key[0] - 'x'));
    }
    default:
      return FieldOf(key);
  }
}

class Parser final : public JsonRecordParser {
 public:
  explicit Parser(const Catalog& catalog)
      : catalog_(catalog), writer_(names()) {}

 protected:
  void BeginChunk(const json::Chunk& chunk) override {
    writer_.Bind(&segment());
    if (known_array_ && array_ == chunk.array) return;
    known_array_ = true;
    array_ = chunk.array;
    info_ = catalog_.Array(array_);
    pid_ = names()->Intern(std::to_string(info_.pid));
    symbols_.clear();
    operations_.clear();
    agents_.clear();
  }
  bool ReadRecord(const Tokens& tokens, size_t& token) override {
    values_.fill(kNoInt);
    return ReadObject(tokens, token, kOther, 0);
  }
  void EmitRecord(const Tokens& tokens, uint64_t offset) override;

 private:
  struct Name {
    StringId text;
    trace::Kind kind = trace::Kind::kKernel;
    int64_t registers = kNoInt;
  };

  bool ReadObject(const Tokens& tokens, size_t& token, Field around, int depth);
  const Name& KernelName(int64_t id);
  std::string_view Operation();
  Agent AgentOf(Field field);
  int64_t Correlation() const;

  void EmitKernel(const rocm::Span& span);
  void EmitCopy(const rocm::Span& span);
  void EmitAllocation(const rocm::Span& span);

  const Catalog& catalog_;
  rocm::Writer writer_;
  std::array<int64_t, kFields> values_{};
  bool known_array_ = false;
  uint32_t array_ = 0;
  RecordArray info_;
  StringId pid_;
  absl::flat_hash_map<int64_t, Name> symbols_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, std::string> operations_;
  absl::flat_hash_map<int64_t, Agent> agents_;
};

bool Parser::ReadObject(const Tokens& tokens, size_t& token, Field around,
                        int depth) {
  constexpr int kMostDepth = 8;
  return json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    const Field field = Member(around, key);
    if (tokens.Kind(at) == '{' && field > kFields && field != kOther &&
        depth < kMostDepth)
      return ReadObject(tokens, at, field, depth + 1);
    RawValue value;
    if (!ReadValue(tokens, at, value)) return false;
    if (field < kFields) {
      if (const auto number = ParseInt(value.text)) values_[field] = *number;
    }
    return true;
  });
}

const Parser::Name& Parser::KernelName(int64_t id) {
  const auto [it, is_new] = symbols_.try_emplace(id);
  if (is_new) {
    Name& name = it->second;
    if (const auto symbol = catalog_.FindSymbol(array_, id)) {
      const std::string_view plain = rocm::PlainKernelName(symbol->name);
      name.text = writer_.Intern(plain);
      name.kind = rocm::KernelKind(plain);
      name.registers = symbol->registers;
    } else {
      name.text = writer_.Intern("kernel " + std::to_string(id));
      segment().diagnostics.Add(
          trace::Effect::kOddity, "kernels_without_symbol",
          "The file has no name for a kernel; it goes by its number.");
    }
  }
  return it->second;
}

std::string_view Parser::Operation() {
  const auto [it, is_new] =
      operations_.try_emplace(std::pair(values_[kKind], values_[kOperation]));
  if (is_new)
    it->second =
        catalog_.Operation(array_, values_[kKind], values_[kOperation]);
  return it->second;
}

Agent Parser::AgentOf(Field field) {
  const int64_t handle = values_[field];
  if (handle == kNoInt) return {};
  const auto [it, is_new] = agents_.try_emplace(handle);
  if (is_new) it->second = catalog_.FindAgent(array_, handle).value_or(Agent());
  return it->second;
}

int64_t Parser::Correlation() const {
  return rocm::Correlation(info_.process, values_[kCorrelation]);
}

void Parser::EmitKernel(const rocm::Span& span) {
  const Name& name = KernelName(values_[kKernel]);
  rocm::Dispatch dispatch;
  dispatch.span = span;
  dispatch.pid = pid_;
  dispatch.name = name.text;
  dispatch.kind = name.kind;
  dispatch.registers = name.registers;
  dispatch.device = AgentOf(kAgent).number;
  dispatch.queue = values_[kQueue];
  dispatch.stream = values_[kStream];
  dispatch.correlation = Correlation();
  for (size_t axis = 0; axis < 3; ++axis) {
    dispatch.workgroup[axis] = values_[kWorkgroupX + axis];
    dispatch.grid[axis] = values_[kGridX + axis];
  }
  dispatch.group_bytes = values_[kGroupBytes];
  writer_.Add(dispatch);
}

void Parser::EmitCopy(const rocm::Span& span) {
  const Agent target = AgentOf(kTargetAgent);
  const Agent source = AgentOf(kSourceAgent);
  rocm::Copy copy;
  copy.span = span;
  copy.pid = pid_;
  const std::string_view operation = Operation();
  copy.name = writer_.Intern(operation.empty() ? "MEMORY_COPY" : operation);
  copy.device = target.gpu ? target.number : source.number;
  copy.stream = values_[kStream];
  copy.correlation = Correlation();
  copy.bytes = values_[kBytes];
  writer_.Add(copy);
}

void Parser::EmitAllocation(const rocm::Span& span) {
  const std::string_view operation = Operation();
  rocm::Allocation allocation;
  allocation.span = span;
  allocation.pid = pid_;
  allocation.device = AgentOf(kAgent).number;
  allocation.address = values_[kAddress];
  // The record of a release has no size.
  const bool released = Contains(operation, "FREE");
  allocation.bytes = released ? kNoInt : values_[kAllocated];
  writer_.Add(allocation);
}

void Parser::EmitRecord(const Tokens& tokens, uint64_t offset) {
  (void)tokens;
  if (info_.domain == Domain::kCounted) {
    segment().diagnostics.Add(
        trace::Effect::kInfo, "records_not_used",
        "Records of kinds that lamina does not use: samples, scratch memory.",
        offset);
    return;
  }
  const rocm::Span span{values_[kStart], values_[kEnd], offset};
  switch (info_.domain) {
    case Domain::kKernels:
      EmitKernel(span);
      break;
    case Domain::kCopies:
      EmitCopy(span);
      break;
    case Domain::kAllocations:
      EmitAllocation(span);
      break;
    case Domain::kMarkers: {
      const std::string text = catalog_.Message(array_, values_[kCorrelation]);
      writer_.AddMarker(span, {pid_, values_[kThread]},
                        text.empty() ? Operation() : text);
      break;
    }
    case Domain::kCalls: {
      rocm::Call call;
      call.span = span;
      call.thread = {pid_, values_[kThread]};
      const std::string_view operation = Operation();
      call.name = writer_.Intern(operation.empty() ? info_.name : operation);
      call.kind = rocm::CallKind(info_.name);
      call.category = info_.name;
      call.correlation = Correlation();
      writer_.Add(call);
      break;
    }
    case Domain::kCounted:
      break;
  }
}

}  // namespace

std::unique_ptr<RecordParser> MakeParser(const Catalog& catalog) {
  return std::make_unique<Parser>(catalog);
}

}  // namespace lamina::ingest::rocprof
