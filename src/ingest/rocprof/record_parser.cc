// SPDX-License-Identifier: Apache-2.0
//
// One record is an object of numbers, some of them in objects of their own
// ("grid_size": {"x": ...}). A walk over its tokens puts each number into its
// field by its key and the key of the object around it; for the records behind
// it that have the same shape it is enough to look at their text.
#include <absl/container/flat_hash_map.h>
#include <array>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/json/tokens.h"
#include "base/text.h"
#include "ingest/common/record_reader.h"
#include "ingest/common/rocm.h"
#include "ingest/rocprof/catalog.h"
#include "ingest/rocprof/reader.h"
#include "ingest/rocprof/shape.h"

namespace lamina::ingest::rocprof {
namespace {

using json::Tokens;
using trace::kNoInt;

// Of the name of a list in what is said of it.
constexpr size_t kShownName = 64;

class Parser final : public JsonRecordParser {
 public:
  explicit Parser(Catalog* catalog) : catalog_(*catalog), writer_(names()) {}

  void Claim(const json::Chunk& chunk) override {
    if (IsDefinitions(catalog_.Array(chunk.array).domain)) catalog_.Claim();
  }

 protected:
  bool BeginChunk(const json::Chunk& chunk) override;
  void EndChunk() override;
  bool ReadRecord(const Tokens& tokens, size_t& token) override {
    if (IsDefinitions(info_.domain)) return definition_.Read(tokens, token);
    return ReadEvent(tokens, token);
  }
  void EmitRecord(const Tokens& tokens, uint64_t offset) override;

 private:
  struct Name {
    StringId text;
    trace::Kind kind = trace::Kind::kKernel;
    int64_t registers = kNoInt;
  };
  struct Operation {
    StringId text;  // invalid: the file has no name for it
    bool releases = false;
    bool scratch = false;
    bool is_virtual = false;
  };

  void BeginArray(uint32_t array);
  bool ReadEvent(const Tokens& tokens, size_t& token);
  bool ReadObject(const Tokens& tokens, size_t& token, Field around, int depth);
  const Name& KernelName(int64_t id);
  const Operation& OperationOf();
  Agent AgentOf(Field field);
  int64_t Correlation() const;

  void EmitKernel(const rocm::Span& span);
  void EmitCopy(const rocm::Span& span);
  void EmitAllocation(const rocm::Span& span);
  void EmitMarker(const rocm::Span& span);
  RangeName PatternName(StringId id, std::string_view pattern);
  void EmitCall(const rocm::Span& span);

  Catalog& catalog_;
  rocm::Writer writer_;
  FieldValues values_{};
  Shape shape_;  // of the last record
  bool known_array_ = false;
  uint32_t array_ = 0;
  RecordArray info_;
  StringId pid_;
  // Of a chunk of definitions.
  uint64_t chunk_offset_ = 0;
  Definition definition_;
  Definitions definitions_;
  // Of a chunk of markers.
  std::optional<Catalog::Messages> messages_;
  std::vector<RangeName> patterns_;  // by id in the catalog
  // Of the array.
  absl::flat_hash_map<int64_t, Name> symbols_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, Operation> operations_;
  absl::flat_hash_map<int64_t, Agent> agents_;
};

void Parser::BeginArray(uint32_t array) {
  if (known_array_ && array_ == array) return;
  known_array_ = true;
  array_ = array;
  info_ = catalog_.Array(array);
  pid_ = names()->Intern(std::to_string(info_.pid));
  symbols_.clear();
  operations_.clear();
  agents_.clear();
}

bool Parser::BeginChunk(const json::Chunk& chunk) {
  writer_.Bind(&segment());
  BeginArray(chunk.array);
  chunk_offset_ = chunk.offset;
  if (IsDefinitions(info_.domain)) return false;
  catalog_.AwaitDefinitions();
  if (info_.domain == Domain::kMarkers) messages_.emplace(catalog_, array_);
  return true;
}

void Parser::EndChunk() {
  messages_.reset();
  if (!IsDefinitions(info_.domain)) return;
  catalog_.Finish(array_, chunk_offset_,
                  std::exchange(definitions_, Definitions()));
}

bool Parser::ReadEvent(const Tokens& tokens, size_t& token) {
  values_.fill(kNoInt);
  if (shape_.Read(tokens, token, values_)) return true;
  values_.fill(kNoInt);
  shape_.Begin(token);
  if (!ReadObject(tokens, token, kOther, 0)) return false;
  shape_.Learn(tokens, token);
  return true;
}

bool Parser::ReadObject(const Tokens& tokens, size_t& token, Field around,
                        int depth) {
  constexpr int kMostDepth = 8;
  return json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    const Field field = FieldOf(around, key);
    if (field == kOther) return json::SkipValue(tokens, at);
    if (field > kFields && tokens.Kind(at) == '{' && depth < kMostDepth)
      return ReadObject(tokens, at, field, depth + 1);
    if (field > kFields) return json::SkipValue(tokens, at);
    shape_.AddField(at, field);
    RawValue value;
    if (!ReadValue(tokens, at, value)) return false;
    if (const auto number = ParseInt(value.text)) values_[field] = *number;
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

const Parser::Operation& Parser::OperationOf() {
  const auto [it, is_new] =
      operations_.try_emplace(std::pair(values_[kKind], values_[kOperation]));
  if (is_new) {
    const std::string text =
        catalog_.Operation(array_, values_[kKind], values_[kOperation]);
    if (!text.empty()) it->second.text = writer_.Intern(text);
    it->second.releases = Contains(text, "FREE");
    it->second.scratch = Contains(text, "SCRATCH");
    it->second.is_virtual = Contains(text, "VMEM");
  }
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
  copy.name = OperationOf().text;
  if (!copy.name.valid()) copy.name = writer_.Intern("MEMORY_COPY");
  copy.device = target.gpu ? target.number : source.number;
  copy.stream = values_[kStream];
  copy.correlation = Correlation();
  copy.bytes = values_[kBytes];
  writer_.Add(copy);
}

void Parser::EmitAllocation(const rocm::Span& span) {
  rocm::Allocation allocation;
  allocation.span = span;
  allocation.pid = pid_;
  allocation.device = AgentOf(kAgent).number;
  allocation.address = values_[kAddress];
  // The record of a release has no size.
  allocation.bytes = OperationOf().releases ? kNoInt : values_[kAllocated];
  if (OperationOf().scratch) allocation.level = "scratch";
  if (OperationOf().is_virtual) allocation.level = "virtual";
  writer_.Add(allocation);
}

void Parser::EmitMarker(const rocm::Span& span) {
  if (!writer_.Usable(span)) return;
  const rocm::Thread thread{pid_, values_[kThread]};
  const Message* message = messages_->Find(values_[kCorrelation]);
  if (message == nullptr || message->pattern == StringPool::kEmpty) {
    writer_.AddMarker(span, thread, names()->Text(OperationOf().text));
    return;
  }
  const std::string_view pattern = messages_->Pattern(message->pattern);
  const OpNumbers& numbers = message->numbers;
  if (span.start_ns == span.end_ns) {
    writer_.AddMarker(span, thread, PutNumbers(pattern, numbers));
    return;
  }
  RangeName range = PatternName(message->pattern, pattern);
  if (numbers.sequence != kNoInt) range.numbers.sequence = numbers.sequence;
  if (numbers.op_id != kNoInt) range.numbers.op_id = numbers.op_id;
  writer_.AddRange(span, thread, range);
}

RangeName Parser::PatternName(StringId id, std::string_view pattern) {
  // A trace has some thousands; of a file of other texts not all are kept.
  constexpr size_t kMostKept = size_t{1} << 16;
  if (id.value >= kMostKept) return writer_.Name(pattern);
  if (id.value >= patterns_.size()) patterns_.resize(id.value + 1);
  RangeName& range = patterns_[id.value];
  if (!range.name.valid()) range = writer_.Name(pattern);
  return range;
}

void Parser::EmitCall(const rocm::Span& span) {
  rocm::Call call;
  call.span = span;
  call.thread = {pid_, values_[kThread]};
  call.name = OperationOf().text;
  if (!call.name.valid()) call.name = writer_.Intern(info_.name);
  call.kind = rocm::CallKind(info_.name);
  call.category = info_.name;
  call.correlation = Correlation();
  writer_.Add(call);
}

void Parser::EmitRecord(const Tokens& tokens, uint64_t offset) {
  (void)tokens;
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
    case Domain::kMarkers:
      EmitMarker(span);
      break;
    case Domain::kCalls:
      EmitCall(span);
      break;
    case Domain::kCounted:
      segment().diagnostics.Add(trace::Effect::kInfo, "records_not_used",
                                "Records of kinds that lamina does not use: "
                                "samples, scratch memory.",
                                offset);
      break;
    case Domain::kUnknown:
      segment().diagnostics.Add(
          trace::Effect::kLost, "unknown_records",
          "Records of a list that lamina does not know: " +
              info_.name.substr(0, kShownName) + ".",
          offset);
      break;
    case Domain::kSymbols:
    case Domain::kMessages:
      definition_.AddTo(definitions_, info_.domain, offset);
      break;
  }
}

}  // namespace

std::unique_ptr<RecordParser> MakeParser(Catalog* catalog) {
  return std::make_unique<Parser>(catalog);
}

}  // namespace lamina::ingest::rocprof
