// SPDX-License-Identifier: Apache-2.0
//
// Where the values of an event stand in the text of a Kineto trace. Keys may
// come in any order ("args" before "ph"), and a repeated key means the last
// one, as in Python's json.

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/decimal.h"
#include "base/json/scan.h"
#include "base/json/tokens.h"
#include "base/text.h"
#include "base/wide_id.h"
#include "ingest/common/arg_rows.h"
#include "ingest/common/record_reader.h"
#include "ingest/kineto/reader.h"
#include "trace/arg_keys.h"
#include "trace/categories.h"

namespace lamina::ingest::kineto {

struct ArgValues {
  uint64_t present = 0;
  std::array<RawValue, trace::kArgKeys> values;

  bool Has(ArgKey key) const { return (present & ArgBit(key)) != 0; }
  const RawValue& operator[](ArgKey key) const {
    return values[static_cast<size_t>(key)];
  }
};

// Values are views of the text, none of them parsed.
struct Event {
  RawValue ph, cat, name, pid, tid, ts, dur, id;
  size_t args_token = 0;  // 0: none
  bool empty = false;     // the object has no members
  bool attr = false;      // its arguments are called "attr"
  ArgValues args;

  void Reset() {
    ph = cat = name = pid = tid = ts = dur = id = RawValue{};
    args_token = 0;
    attr = false;
    args.present = 0;
  }
};

// The object at `token`; moves behind it. False when it is none.
bool ReadEvent(const json::Tokens& tokens, size_t& token, Event& event);

namespace {

using json::Tokens;

bool ReadArgs(const Tokens& tokens, size_t& token, ArgValues& args) {
  return json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    const ArgKey known = trace::FindArgKey(key);
    if (known == ArgKey::kCount) return json::SkipValue(tokens, at);
    RawValue& value = args.values[static_cast<size_t>(known)];
    args.present |= ArgBit(known);
    return ReadValue(tokens, at, value);
  });
}

// Where the value of a member goes; null: nowhere.
RawValue* FieldOf(std::string_view key, Event& event) {
  switch (key.size()) {
    case 2:
      if (key == "ph") return &event.ph;
      if (key == "ts") return &event.ts;
      if (key == "id") return &event.id;
      break;
    case 3:
      if (key == "cat") return &event.cat;
      if (key == "pid") return &event.pid;
      if (key == "tid") return &event.tid;
      if (key == "dur") return &event.dur;
      break;
    case 4:
      if (key == "name") return &event.name;
      break;
    default:
      break;
  }
  return nullptr;
}

}  // namespace

bool ReadEvent(const Tokens& tokens, size_t& token, Event& event) {
  event.Reset();
  event.empty = true;
  return json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    event.empty = false;
    const bool attr = key == "attr";  // IBM AIU
    if ((key == "args" || attr) && tokens.Kind(at) == '{') {
      event.args_token = at;
      event.attr = attr;
      return ReadArgs(tokens, at, event.args);
    }
    RawValue unused;
    RawValue* const to = FieldOf(key, event);
    return ReadValue(tokens, at, to != nullptr ? *to : unused);
  });
}

// The hot loop of loading. One event costs about 100 ns: a walk over its
// tokens with one look-up per key, and one hash of its name.
// Values are parsed only when the kind of the event has a place for them; lists
// such as "Input Dims" are never parsed here but interned as text, since a
// trace repeats the same few thousand of them.

namespace {

using json::Tokens;
using trace::Effect;
using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;
using trace::TrackId;

trace::FlowKind FlowKindOf(std::string_view category) {
  if (category == "ac2g" || category == "async_gpu" ||
      category == "async_cpu_to_gpu" || category == "cpu_to_cuda" ||
      category == "api_op" /* rpd2tracing */ ||
      category == "HostToDevice" /* Ascend */)
    return trace::FlowKind::kLaunch;
  if (category == "fwdbwd" || category == "forward_backward")
    return trace::FlowKind::kForwardBackward;
  return trace::FlowKind::kOther;
}

// "[8, 1, 1]" -> {8, 1, 1}; also "8,1,1".
std::array<uint32_t, 3> ParseTriple(std::string_view text) {
  std::array<uint32_t, 3> out{};
  size_t index = 0;
  size_t pos = 0;
  while (pos < text.size() && index < 3) {
    if (text[pos] < '0' || text[pos] > '9') {
      ++pos;
      continue;
    }
    uint64_t value = 0;
    while (pos < text.size() && text[pos] >= '0' && text[pos] <= '9')
      value = std::min<uint64_t>(
          value * 10 + static_cast<uint64_t>(text[pos++] - '0'), 0xFFFFFFFF);
    out[index++] = static_cast<uint32_t>(value);
  }
  return out;
}

// PyTorch without Kineto (1.13 of Debian, versions before 1.8) writes no
// categories: its processes say what an event is, and among those of the host
// ops are told from ranges of the user by their names.
Kind LegacyKind(std::string_view pid, std::string_view name) {
  if (pid == "CUDA functions") return Kind::kKernel;
  if (pid != "CPU functions") return Kind::kOther;
  const bool op =
      name.find("::") != name.npos || name.find("Backward") != name.npos;
  return trace::KindOfEvent(op ? Kind::kOp : Kind::kAnnotation, name);
}

// What an event of IBM AIU is: the last words of its name say it.
Kind AiuKind(std::string_view name) {
  if (name.ends_with(" Cmpt Exec")) return Kind::kKernel;
  return name.ends_with(" DmaI") || name.ends_with(" DmaO") ? Kind::kMemcpy
                                                            : Kind::kOther;
}

constexpr std::string_view kMtiaCategory = "mtia_ccp_events";

// Text ids of flows as numbers below zero, outside the range of correlation
// ids (FNV-1a).
int64_t TextFlowId(std::string_view text) {
  return -1 - static_cast<int64_t>(Fnv1a(text) >> 2);
}

class EventParser final : public JsonRecordParser {
 protected:
  bool BeginChunk(const json::Chunk& chunk) override {
    (void)chunk;
    segment_ = &segment();
    return true;
  }
  bool ReadRecord(const Tokens& tokens, size_t& token) override {
    return ReadEvent(tokens, token, event_);
  }
  void EmitRecord(const Tokens& tokens, uint64_t offset) override {
    Emit(tokens, offset);
  }

 private:
  struct KnownCategory {
    std::string raw;
    Kind kind;
    trace::FlowKind flow;
    uint8_t index;
    bool counters;  // its events have counters as arguments
    bool mtia;      // its events are device work of MTIA
  };
  struct KnownTrack {
    std::string pid;
    std::string tid;
    TrackId track;
  };

  void Emit(const Tokens& tokens, uint64_t offset);
  void EmitSpan(const Tokens& tokens, int64_t start_ns, uint64_t offset);
  void EmitFlow(int64_t time_ns, char phase);
  void EmitInstant(int64_t time_ns);
  void EmitCounter(const Tokens& tokens, int64_t time_ns);
  void EmitEventCounters(const Tokens& tokens);
  // f(name, value) for every argument of the current event that is a number.
  template <class F>
  void ForNumbers(const Tokens& tokens, const F& f);
  void EmitFact();
  // The arguments of the current event for the templates of arg_rows.h.
  struct ArgView {
    EventParser& parser;
    bool Has(ArgKey key) const { return parser.event_.args.Has(key); }
    uint64_t present() const { return parser.event_.args.present; }
    int64_t Int(ArgKey key) const {
      if (!Has(key)) return kNoInt;
      const std::string_view text = parser.event_.args[key].text;
      return (IsId(key) ? ParseWideId(text) : ParseInt(text)).value_or(kNoInt);
    }
    // A number, also in the digits of 16.
    int64_t WideInt(ArgKey key) const {
      if (!Has(key)) return kNoInt;
      const std::string_view text = parser.event_.args[key].text;
      if (!text.starts_with("0x")) return ParseInt(text).value_or(kNoInt);
      int64_t value = 0;
      const auto [end, error] = std::from_chars(
          text.data() + 2, text.data() + text.size(), value, 16);
      const bool whole = end == text.data() + text.size();
      return error == std::errc() && whole ? value : kNoInt;
    }
    std::optional<double> Real(ArgKey key) const {
      return ParseDouble(parser.event_.args[key].text);
    }
    StringId Text(ArgKey key) { return parser.InternOptional(key); }
    StringId List(ArgKey key) { return parser.InternList(key); }
    std::array<uint32_t, 3> Triple(ArgKey key) const {
      return ParseTriple(parser.event_.args[key].text);
    }
  };
  uint32_t MakeDetail(Kind kind) {
    ArgView args{*this};
    const uint32_t row = DetailRow(kind, args, *segment_);
    if (kind == Kind::kOther && row != kNoRow &&
        args.Has(ArgKey::kKernelDetails))
      segment_->api_calls[row].config = XlaConfig();
    return row;
  }

  uint32_t XlaConfig();
  bool IsXlaStep(Kind kind) const;
  StringId InternText(const RawValue& raw);
  StringId CounterName();
  StringId MtiaCopyName();
  void FillMtia(Kind kind, uint32_t detail);
  StringId InternOptional(ArgKey key);
  StringId InternList(ArgKey key);
  const KnownCategory& Category();
  TrackId Track();

  trace::Segment* segment_ = nullptr;
  Event event_;
  std::vector<KnownCategory> categories_;
  std::vector<KnownTrack> tracks_ = std::vector<KnownTrack>(256);
  TextMap<StringId> escaped_;
  TextMap<StringId> lists_;
};

// --------------------------------------------------------------------------
// Names

StringId EventParser::InternText(const RawValue& raw) {
  trace::LocalNames& names = *segment_->names;
  if (raw.kind != '"' || raw.text.find('\\') == std::string_view::npos)
    return names.Intern(raw.text);
  const auto it = escaped_.find(raw.text);
  if (it != escaped_.end()) return it->second;
  const StringId id = names.Intern(json::DecodeString(raw.text));
  escaped_.emplace(raw.text, id);
  return id;
}

StringId EventParser::InternOptional(ArgKey key) {
  return event_.args.Has(key) ? InternText(event_.args[key]) : StringId();
}

StringId EventParser::InternList(ArgKey key) {
  if (!event_.args.Has(key)) return {};
  const RawValue& raw = event_.args[key];
  if (raw.kind != '[') return {};  // null, or text of an unknown form
  const auto it = lists_.find(raw.text);
  if (it != lists_.end()) return it->second;
  const StringId id = segment_->names->Intern(json::Canonical(raw.text));
  lists_.emplace(raw.text, id);
  return id;
}

// Counters of one name with different ids are different; Chrome shows them as
// name[id].
StringId EventParser::CounterName() {
  const RawValue& id = event_.id;
  const bool text = id.kind == '"';
  if (!text && !ParseDouble(id.text)) return InternText(event_.name);
  const std::string name = event_.name.kind == '"'
                               ? json::DecodeString(event_.name.text)
                               : std::string(event_.name.text);
  return segment_->names->Intern(
      name + "[" + (text ? json::DecodeString(id.text) : std::string(id.text)) +
      "]");
}

const EventParser::KnownCategory& EventParser::Category() {
  const std::string_view raw = event_.cat.text;
  for (const KnownCategory& known : categories_) {
    if (known.raw == raw) return known;
  }
  const StringId id = InternText(event_.cat);
  // A hostile file may name many: the list stays short, the rest is looked up
  // each time.
  if (categories_.size() >= 64) categories_.pop_back();
  categories_.push_back({std::string(raw), trace::KindOfCategory(raw),
                         FlowKindOf(raw), segment_->names->InternCategory(id),
                         raw == trace::kCounterRangeCategory,
                         raw == kMtiaCategory});
  return categories_.back();
}

TrackId EventParser::Track() {
  const std::string_view pid = event_.pid.text;
  const std::string_view tid = event_.tid.text;
  size_t hash = pid.size() * 7 + tid.size();
  for (const char c : pid) hash = hash * 31 + static_cast<unsigned char>(c);
  for (const char c : tid) hash = hash * 31 + static_cast<unsigned char>(c);
  KnownTrack& known = tracks_[hash % tracks_.size()];
  if (known.track.valid() && known.pid == pid && known.tid == tid)
    return known.track;
  const StringId pid_id = InternText(event_.pid);
  const StringId tid_id = InternText(event_.tid);
  known.track = segment_->names->InternTrack(pid_id, tid_id);
  known.pid = pid;
  known.tid = tid;
  return known.track;
}

// XLA writes how a kernel was launched as one text:
// "regs:64 static_shared:0 dynamic_shared:0 grid:96,1,1 block:256,1,1 ...".
uint32_t EventParser::XlaConfig() {
  const std::string_view text = event_.args[ArgKey::kKernelDetails].text;
  const auto value = [&](std::string_view key) {
    const size_t at = text.find(key);
    if (at == text.npos) return std::string_view();
    const std::string_view rest = text.substr(at + key.size());
    return rest.substr(0, rest.find(' '));
  };
  const std::string_view grid = value("grid:");
  if (grid.empty()) return kNoRow;
  trace::LaunchConfig config;
  config.grid = ParseTriple(grid);
  config.block = ParseTriple(value("block:"));
  config.registers_per_thread = ParseInt(value("regs:")).value_or(kNoInt);
  const int64_t fixed = ParseInt(value("static_shared:")).value_or(0);
  const int64_t dynamic = ParseInt(value("dynamic_shared:")).value_or(0);
  constexpr int64_t kMostBytes = int64_t{1} << 32;
  if (fixed >= 0 && dynamic >= 0 && fixed < kMostBytes && dynamic < kMostBytes)
    config.shared_memory_bytes = fixed + dynamic;
  return segment_->names->InternConfig(config);
}

// A step of the user in the JSON of XLA: an event without a category that has
// a number.
bool EventParser::IsXlaStep(Kind kind) const {
  return kind == Kind::kOther && event_.cat.text.empty() && !event_.attr &&
         event_.args.Has(ArgKey::kStepNum) &&
         !event_.args.Has(ArgKey::kCorrelationId);
}

// Copies of MTIA are all called "dma_request".
StringId EventParser::MtiaCopyName() {
  std::string_view direction;
  if (event_.args.Has(ArgKey::kDirection))
    direction = event_.args[ArgKey::kDirection].text;
  return segment_->names->Intern(
      direction == "HOST_TO_DEVICE"   ? "dma_request HtoD"
      : direction == "DEVICE_TO_HOST" ? "dma_request DtoH"
                                      : "dma_request");
}

// Copies of one queue run in order, those of a thread do not.
void EventParser::FillMtia(Kind kind, uint32_t detail) {
  if (kind != Kind::kMemcpy) return;
  const ArgView args{*this};
  trace::DeviceArgs& row = segment_->device[detail];
  row.bytes = args.Int(ArgKey::kSize);
  const int64_t thread = ParseInt(event_.tid.text).value_or(kNoInt);
  const int64_t queue = args.Int(ArgKey::kQueueId);
  constexpr int64_t kMost = int64_t{1} << 40;
  if (thread >= 0 && thread < kMost && queue >= 0 && queue < 1000)
    row.stream = thread * 1000 + queue;
}

// --------------------------------------------------------------------------
// Rows

void EventParser::Emit(const Tokens& tokens, uint64_t offset) {
  const Event& e = event_;
  // Writers that put a comma behind every event begin or end with an empty one.
  if (e.empty) {
    segment_->diagnostics.Add(Effect::kInfo, "empty_record",
                              "Empty records (\"{}\") hold no event.", offset);
    return;
  }
  if (!e.ph.present() || e.ph.kind != '"' || e.ph.text.size() != 1) {
    Lost("not_an_event", "A record has no phase (\"ph\").", offset);
    return;
  }
  const char phase = e.ph.text[0];
  if (phase == 'M') {
    EmitFact();
    return;
  }
  if (!e.ts.present()) {
    Lost("event_without_time", "An event has no time (\"ts\").", offset);
    return;
  }
  const auto time = ParseMicroseconds(e.ts.text);
  if (!time || !trace::IsUsableTime(time->ns)) {
    Lost("time_out_of_range",
         "The time of an event is no number, or more than 73 years from the "
         "zero of the clock.",
         offset);
    return;
  }
  if (!time->exact) {
    segment_->diagnostics.Add(
        Effect::kInfo, "sub_nanosecond_input",
        "Times have digits below a nanosecond; they are rounded half to even.",
        offset);
  }
  switch (phase) {
    case 'X':
    case 'B':
    case 'E':
      EmitSpan(tokens, time->ns, offset);
      return;
    case 's':
    case 't':
    case 'f':
      EmitFlow(time->ns, phase);
      return;
    case 'i':
    case 'I':
    case 'R':
      EmitInstant(time->ns);
      return;
    case 'C':
      EmitCounter(tokens, time->ns);
      return;
    default:
      segment_->diagnostics.Add(
          Effect::kInfo, "unused_phase",
          "Events of phases that no analysis uses (async, object, context).",
          offset);
  }
}

void EventParser::EmitSpan(const Tokens& tokens, int64_t start_ns,
                           uint64_t offset) {
  const Event& e = event_;
  const char phase = e.ph.text[0];
  int64_t dur_ns = 0;
  if (phase == 'X' && e.dur.present()) {
    const auto dur = ParseMicroseconds(e.dur.text);
    if (!dur || dur->ns > trace::kMaxDurationNs) {
      Lost("duration_out_of_range",
           "The duration of an event is no number, or longer than 7 days.",
           offset);
      return;
    }
    if (dur->ns < 0) {
      Lost("negative_duration",
           "An event ends before it begins; it is in no sum.", offset);
      return;
    }
    if (!dur->exact) {
      segment_->diagnostics.Add(
          Effect::kInfo, "sub_nanosecond_input",
          "Times have digits below a nanosecond; they are rounded half to "
          "even.",
          offset);
    }
    dur_ns = dur->ns;
  }
  const KnownCategory& category = Category();
  const TrackId track = Track();
  Kind kind = trace::KindOfEvent(category.kind, e.name.text);
  if (kind == Kind::kOther && e.cat.text.empty()) {
    kind = e.attr ? AiuKind(e.name.text) : LegacyKind(e.pid.text, e.name.text);
  }
  StringId name = InternText(e.name);
  if (category.mtia && e.name.text == "dma_request") {
    kind = Kind::kMemcpy;
    name = MtiaCopyName();
  }
  if (phase == 'X') {
    if (category.counters) EmitEventCounters(tokens);
    if (IsXlaStep(kind)) {
      trace::OpArgs step;
      step.sequence = ArgView{*this}.Int(ArgKey::kStepNum);
      trace::LocalNames& names = *segment_->names;
      segment_->AddSlice(
          start_ns, dur_ns, name, Kind::kAnnotation,
          names.InternCategory(names.Intern(trace::kStepCategory)), track,
          offset, segment_->AddOp(step));
      return;
    }
    const uint32_t detail = MakeDetail(kind);
    if (category.mtia) FillMtia(kind, detail);
    segment_->AddSlice(start_ns, dur_ns, name, kind, category.index, track,
                       offset, detail);
    return;
  }
  trace::HalfSlice half;
  half.time_ns = start_ns;
  half.offset = offset;
  half.name = name;
  half.track = track;
  half.uid = segment_->next_uid;
  half.kind = kind;
  half.category = category.index;
  half.begin = phase == 'B';
  if (half.begin) half.detail = MakeDetail(kind);
  if (half.begin && e.attr && trace::IsDevice(kind)) {
    segment_->device[half.detail].bytes =
        ArgView{*this}.WideInt(ArgKey::kMemoryBytes);
  }
  segment_->halves.push_back(half);
}

void EventParser::EmitFlow(int64_t time_ns, char phase) {
  const Event& e = event_;
  int64_t id = kNoInt;
  if (e.id.present()) {
    const auto number = ParseWideId(e.id.text);
    id = number ? *number : TextFlowId(e.id.text);
  }
  trace::Flows& flows = segment_->flows;
  flows.time_ns.push_back(time_ns);
  flows.id.push_back(id);
  flows.track.push_back(Track());
  flows.phase.push_back(phase == 's'   ? trace::FlowPhase::kStart
                        : phase == 't' ? trace::FlowPhase::kStep
                                       : trace::FlowPhase::kFinish);
  flows.kind.push_back(Category().flow);
  flows.uid.push_back(segment_->next_uid);
}

void EventParser::EmitInstant(int64_t time_ns) {
  trace::Instants& instants = segment_->instants;
  instants.time_ns.push_back(time_ns);
  instants.name.push_back(InternText(event_.name));
  instants.track.push_back(Track());
  instants.uid.push_back(segment_->next_uid);
  instants.memory.push_back(MemoryRow(ArgView{*this}, *segment_));
}

template <class F>
void EventParser::ForNumbers(const Tokens& tokens, const F& f) {
  size_t token = event_.args_token;
  if (token == 0) return;
  json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    RawValue value;
    if (!ReadValue(tokens, at, value)) return false;
    if (const auto number = ParseDouble(value.text))
      f(InternText({key, '"'}), *number, value.kind == '"');
    return true;
  });
}

// Every numeric argument of a counter event is a series of its own.
void EventParser::EmitCounter(const Tokens& tokens, int64_t time_ns) {
  if (event_.args_token == 0) return;
  const StringId name = CounterName();
  const TrackId track = Track();
  ForNumbers(tokens, [&](StringId series, double number, bool) {
    trace::Counters& counters = segment_->counters;
    counters.time_ns.push_back(time_ns);
    counters.name.push_back(name);
    counters.series.push_back(series);
    counters.track.push_back(track);
    counters.value.push_back(number);
    counters.uid.push_back(segment_->next_uid);
  });
}

void EventParser::EmitEventCounters(const Tokens& tokens) {
  ForNumbers(tokens, [&](StringId name, double number, bool quoted) {
    if (!quoted && std::isfinite(number))
      segment_->event_counters.push_back({number, name, segment_->next_uid});
  });
}

void EventParser::EmitFact() {
  using What = trace::TrackFact::What;
  const std::string_view name = event_.name.text;
  trace::TrackFact fact;
  ArgKey source = ArgKey::kName;
  if (name == "process_name") {
    fact.what = What::kProcessName;
  } else if (name == "process_labels") {
    fact.what = What::kProcessLabels;
    source = ArgKey::kLabels;
  } else if (name == "process_sort_index") {
    fact.what = What::kProcessSort;
    source = ArgKey::kSortIndex;
  } else if (name == "thread_name") {
    fact.what = What::kThreadName;
  } else if (name == "thread_sort_index") {
    fact.what = What::kThreadSort;
    source = ArgKey::kSortIndex;
  } else {
    return;
  }
  if (!event_.args.Has(source)) return;
  if (!event_.tid.present()) event_.tid = {"0", '0'};
  fact.track = Track();
  fact.text = InternText(event_.args[source]);
  fact.number = ArgView{*this}.Int(source);
  segment_->facts.push_back(fact);
}

}  // namespace

std::unique_ptr<RecordParser> MakeEventParser() {
  return std::make_unique<EventParser>();
}

}  // namespace lamina::ingest::kineto
