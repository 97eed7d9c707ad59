// SPDX-License-Identifier: Apache-2.0
//
// Input: a file of any known format. Output: requests with times in whole
// nanoseconds. A JSON document, or a line of one, is parsed as it stands, and
// once more with its faults mended where the parser refuses it (Python writes
// NaN). Times that cannot be true leave their request out.
#include "serving/records.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <set>
#include <simdjson.h>

#include "base/byte_source.h"
#include "base/counted.h"
#include "base/csv_rows.h"
#include "base/decimal.h"
#include "base/json/strict.h"
#include "base/text.h"

namespace lamina::serving {
namespace {

using simdjson::dom::element;

constexpr size_t kMostRecordBytes = size_t{1} << 30;
// Seconds and nanoseconds above are a wall clock: 2001 and later.
constexpr double kEpochSeconds = 1e9;
constexpr double kNsPerSecond = 1e9;
// No clock and no request goes beyond.
constexpr double kMostNs = 4e18;
constexpr int64_t kLongestNs = int64_t{30} * 24 * 3600 * 1'000'000'000;
constexpr size_t kMostTokens = 10'000'000;

std::optional<element> MemberOf(const element& object, std::string_view key) {
  simdjson::dom::object members;
  element value;
  if (object.get(members) != simdjson::SUCCESS ||
      members[key].get(value) != simdjson::SUCCESS || value.is_null())
    return std::nullopt;
  return value;
}

std::optional<double> NumberOf(const std::optional<element>& value) {
  double number = 0;
  if (!value || value->get(number) != simdjson::SUCCESS ||
      !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::optional<int64_t> CountOf(const std::optional<element>& value) {
  const auto number = NumberOf(value);
  if (!number || *number < 0 || *number > 1e12) return std::nullopt;
  return std::llround(*number);
}

// Whole nanoseconds are taken digit by digit: a double has not enough of them
// for a wall clock.
std::optional<int64_t> NsOf(const std::optional<element>& value,
                            double ns_per_unit) {
  int64_t whole = 0;
  if (value && ns_per_unit == 1 && value->get(whole) == simdjson::SUCCESS)
    return whole;
  const auto number = NumberOf(value);
  if (!number || std::abs(*number * ns_per_unit) > kMostNs) return std::nullopt;
  return std::llround(*number * ns_per_unit);
}

std::string TextOf(const std::optional<element>& value) {
  std::string_view text;
  int64_t number = 0;
  if (value && value->get(text) == simdjson::SUCCESS) return std::string(text);
  if (value && value->get(number) == simdjson::SUCCESS)
    return std::to_string(number);
  return {};
}

std::optional<simdjson::dom::array> ListOf(const element& object,
                                           std::string_view key) {
  const auto value = MemberOf(object, key);
  simdjson::dom::array list;
  if (!value || value->get(list) != simdjson::SUCCESS) return std::nullopt;
  return list;
}

// A list of numbers, each times `ns_per_unit`, as times from the one before.
// False: one of them can be no time.
bool AddGaps(const element& list, double ns_per_unit, double begin,
             std::vector<int64_t>& out) {
  simdjson::dom::array gaps;
  if (list.get(gaps) != simdjson::SUCCESS) return false;
  double at = begin;
  for (const element gap : gaps) {
    const auto number = NumberOf(gap);
    if (!number || *number < 0 || out.size() > kMostTokens) return false;
    at += *number * ns_per_unit;
    if (at > static_cast<double>(kLongestNs)) return false;
    out.push_back(std::llround(at));
  }
  return true;
}

bool IsUsable(const Request& request) {
  return !request.chunk_ns.empty() && request.chunk_ns.front() >= 0 &&
         request.chunk_ns.back() <= kLongestNs &&
         std::abs(static_cast<double>(request.start_ns)) < kMostNs &&
         std::is_sorted(request.chunk_ns.begin(), request.chunk_ns.end());
}

void AddRequest(Request request, Records& out) {
  if (IsUsable(request)) {
    out.requests.push_back(std::move(request));
  } else {
    ++out.unusable;
  }
}

// --- arrays of a whole run: vLLM and SGLang ---

bool IsRun(const element& object) {
  return ListOf(object, "ttfts") && ListOf(object, "itls");
}

std::vector<element> ElementsOf(const element& object, std::string_view key) {
  std::vector<element> out;
  if (const auto list = ListOf(object, key)) {
    for (const element one : *list) out.push_back(one);
  }
  return out;
}

Records RunOf(const element& run) {
  Records out;
  const std::string backend = TextOf(MemberOf(run, "backend"));
  out.format = Contains(backend, "sglang") ? "SGLang bench" : "vLLM bench";
  const auto ttfts = ElementsOf(run, "ttfts"), itls = ElementsOf(run, "itls");
  const auto starts = ElementsOf(run, "start_times");
  const auto inputs = ElementsOf(run, "input_lens");
  const auto outputs = ElementsOf(run, "output_lens");
  const auto errors = ElementsOf(run, "errors");
  const auto at = [](const std::vector<element>& list, size_t i) {
    return i < list.size() ? std::optional(list[i]) : std::nullopt;
  };
  out.clock = starts.empty() ? Clock::kNone : Clock::kOwn;
  if (const auto first = NumberOf(at(starts, 0)); first > kEpochSeconds)
    out.clock = Clock::kEpoch;
  for (size_t i = 0; i < ttfts.size(); ++i) {
    if (!TextOf(at(errors, i)).empty()) {
      ++out.failed;
      continue;
    }
    Request request;
    request.id = std::to_string(i);
    request.input_tokens = CountOf(at(inputs, i));
    request.output_tokens = CountOf(at(outputs, i));
    const auto start = NsOf(at(starts, i), kNsPerSecond);
    const auto ttft = NumberOf(ttfts[i]);
    const auto own = at(itls, i);
    request.start_ns = start.value_or(0);
    // A request that failed has zeros.
    if (ttft && *ttft > 0 && *ttft * kNsPerSecond < 1e18)
      request.chunk_ns = {std::llround(*ttft * kNsPerSecond)};
    if (request.chunk_ns.empty() || (!start && !starts.empty()) || !own ||
        !AddGaps(*own, kNsPerSecond, *ttft * kNsPerSecond, request.chunk_ns)) {
      ++out.unusable;
      continue;
    }
    AddRequest(std::move(request), out);
  }
  return out;
}

// --- an object per request ---

std::optional<element> MetricOf(const element& metrics, std::string_view name) {
  const auto metric = MemberOf(metrics, name);
  if (!metric) return std::nullopt;
  const auto value = MemberOf(*metric, "value");
  return value ? value : metric;
}

// AIPerf and the later genai-perf.
bool AddAiperf(const element& line, Records& out) {
  const auto about = MemberOf(line, "metadata");
  const auto metrics = MemberOf(line, "metrics");
  if (!about || !metrics || !MemberOf(*about, "request_start_ns")) return false;
  out.format = "AIPerf";
  out.clock = Clock::kEpoch;
  bool cancelled = false;
  if (const auto flag = MemberOf(*about, "was_cancelled"))
    cancelled = flag->get(cancelled) == simdjson::SUCCESS && cancelled;
  if (TextOf(MemberOf(*about, "benchmark_phase")) == "warmup") {
    ++out.warmup;
    return true;
  }
  if (MemberOf(line, "error") || cancelled) {
    ++out.failed;
    return true;
  }
  constexpr double kNsPerMs = 1e6;
  Request request;
  request.id = TextOf(MemberOf(*about, "x_request_id"));
  request.input_tokens = CountOf(MetricOf(*metrics, "input_sequence_length"));
  request.output_tokens = CountOf(MetricOf(*metrics, "output_sequence_length"));
  const auto start = NsOf(MemberOf(*about, "request_start_ns"), 1);
  const auto ttft = NumberOf(MetricOf(*metrics, "time_to_first_token"));
  const auto gaps = MetricOf(*metrics, "inter_chunk_latency");
  if (!start || !ttft || *ttft < 0 || *ttft > 1e12) {
    ++out.unusable;
    return true;
  }
  request.start_ns = *start;
  request.chunk_ns = {std::llround(*ttft * kNsPerMs)};
  simdjson::dom::array list;
  if (gaps && gaps->get(list) == simdjson::SUCCESS) {
    if (!AddGaps(*gaps, kNsPerMs, *ttft * kNsPerMs, request.chunk_ns))
      request.chunk_ns.clear();
  } else if (const auto whole =
                 NumberOf(MetricOf(*metrics, "request_latency"))) {
    if (request.output_tokens.value_or(1) > 1) {
      out.every_token = false;
      request.chunk_ns.push_back(
          std::llround(std::min(*whole, 1e12) * kNsPerMs));
    }
  }
  AddRequest(std::move(request), out);
  return true;
}

// "" and "data: [DONE]" close a stream and are no tokens.
bool IsClosing(const std::optional<element>& response) {
  if (!response) return false;
  const auto inner = MemberOf(*response, "response");
  std::string_view text;
  if ((inner ? *inner : *response).get(text) != simdjson::SUCCESS) return false;
  return text.find_first_not_of(" \r\n") == std::string_view::npos ||
         text.find("[DONE]") != std::string_view::npos;
}

// profile_export.json of the earlier genai-perf.
bool AddGenaiPerf(const element& document, Records& out) {
  const auto experiments = ListOf(document, "experiments");
  if (!experiments) return false;
  out.format = "genai-perf";
  out.clock = Clock::kEpoch;
  for (const element experiment : *experiments) {
    const auto requests = ListOf(experiment, "requests");
    if (!requests) continue;
    for (const element one : *requests) {
      Request request;
      request.id = std::to_string(out.requests.size() + out.unusable);
      const auto start = NsOf(MemberOf(one, "timestamp"), 1);
      const auto times = ElementsOf(one, "response_timestamps");
      const auto texts = ElementsOf(one, "response_outputs");
      bool good = start.has_value();
      for (size_t i = 0; good && i < times.size(); ++i) {
        if (i < texts.size() && IsClosing(texts[i])) continue;
        const auto at = NsOf(times[i], 1);
        good = at && *at >= *start && *at - *start <= kLongestNs;
        if (good) request.chunk_ns.push_back(*at - *start);
      }
      if (!good) request.chunk_ns.clear();
      request.start_ns = start.value_or(0);
      AddRequest(std::move(request), out);
    }
  }
  return true;
}

// Fields with a unit at the end of their name: start_ns, start_ms, start_s,
// start.
std::optional<int64_t> TimeField(const element& object, std::string_view name) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"_ns", 1}, {"_us", 1e3}, {"_ms", 1e6}, {"_s", 1e9}, {"", 1e9}};
  for (const auto& [ending, ns] : kUnits) {
    const std::string key = std::string(name) + std::string(ending);
    if (const auto time = NsOf(MemberOf(object, key), ns)) return time;
  }
  return std::nullopt;
}

// Times of a server: when a request came, was taken, gave tokens.
struct ServerTimes {
  std::optional<int64_t> start, scheduled, first, last;
};

bool AddServerTimes(const ServerTimes& times, const char* format,
                    Request request, Records& out) {
  if (!times.start || !times.first) {
    ++out.unusable;
    return true;
  }
  out.format = format;
  out.every_token = false;
  out.clock = static_cast<double>(*times.start) > kEpochSeconds * kNsPerSecond
                  ? Clock::kEpoch
                  : Clock::kOwn;
  const auto far = [&](int64_t time) {
    return std::abs(static_cast<double>(time)) > kMostNs;
  };
  if (far(*times.start) || far(*times.first) || far(times.last.value_or(0)) ||
      far(times.scheduled.value_or(0))) {
    ++out.unusable;
    return true;
  }
  request.start_ns = *times.start;
  request.chunk_ns = {*times.first - *times.start};
  if (times.last && *times.last > *times.first)
    request.chunk_ns.push_back(*times.last - *times.start);
  if (times.scheduled && *times.scheduled >= *times.start)
    request.queue_ns = *times.scheduled - *times.start;
  AddRequest(std::move(request), out);
  return true;
}

std::string IdOf(const element& object, size_t number) {
  for (const char* key : {"request_id", "request", "id", "x_request_id"}) {
    if (std::string id = TextOf(MemberOf(object, key)); !id.empty()) return id;
  }
  return std::to_string(number);
}

// What TensorRT-LLM keeps per request, and what vLLM does.
bool AddEngineRecord(const element& object, Records& out) {
  element times = object;
  if (const auto metrics = MemberOf(object, "perf_metrics")) times = *metrics;
  if (const auto timing = MemberOf(times, "timing_metrics"))
    times = *timing;
  else if (const auto own = MemberOf(object, "metrics"))
    times = *own;
  Request request;
  request.id = IdOf(object, out.requests.size() + out.unusable);
  const auto count = [&](std::initializer_list<const char*> keys) {
    std::optional<int64_t> found;
    for (const char* key : keys) {
      if (!found) found = CountOf(MemberOf(object, key));
      if (!found) found = CountOf(MemberOf(times, key));
    }
    return found;
  };
  request.input_tokens = count({"num_prompt_tokens", "prompt_tokens",
                                "input_tokens", "input", "input_length"});
  request.output_tokens = count({"num_generation_tokens", "completion_tokens",
                                 "output_tokens", "output", "output_length"});
  request.cached_tokens = count({"num_cached_tokens", "cached_tokens"});
  if (MemberOf(times, "first_token_time")) {
    return AddServerTimes({TimeField(times, "arrival_time"),
                           TimeField(times, "first_scheduled_time"),
                           TimeField(times, "first_token_time"),
                           TimeField(times, "last_token_time")},
                          MemberOf(object, "perf_metrics")
                              ? "TensorRT-LLM request metrics"
                              : "engine request metrics",
                          std::move(request), out);
  }
  if (MemberOf(times, "first_token_ts")) {
    // Where the arrival is a wall clock and the others are not, the queue is
    // what there is to begin with.
    auto start = TimeField(times, "queued_ts");
    if (!start) start = TimeField(times, "arrival_time");
    return AddServerTimes(
        {start, TimeField(times, "scheduled_ts"),
         TimeField(times, "first_token_ts"), TimeField(times, "last_token_ts")},
        "vLLM request stats", std::move(request), out);
  }
  const auto first = TimeField(object, "first");
  const auto start = TimeField(object, "start");
  if (!first && !start) return false;
  return AddServerTimes(
      {start, TimeField(object, "scheduled"), first, TimeField(object, "last")},
      "table of requests", std::move(request), out);
}

bool AddRecord(const element& object, Records& out) {
  return AddAiperf(object, out) || AddEngineRecord(object, out);
}

// --- a document, or lines of them ---

// The document that is all of `text`; null: it is none.
class JsonText {
 public:
  std::optional<element> Parse(std::string_view text) {
    element document;
    if (parser_.parse(text.data(), text.size()).get(document) ==
        simdjson::SUCCESS)
      return document;
    const auto mended = json::MakeStrict(text);
    if (!mended || parser_.parse(*mended).get(document) != simdjson::SUCCESS)
      return std::nullopt;
    return document;
  }

 private:
  simdjson::dom::parser parser_;
};

Error NoRecords(const std::string& name) {
  return InputError(
      name, "holds no requests of a known form",
      "known are the benches of vLLM (--save-result --save-detailed), SGLang "
      "(--output-file --output-details), AIPerf and genai-perf "
      "(profile_export), metrics of requests of TensorRT-LLM and vLLM, and "
      "tables with the columns request, start, first and last");
}

// True: `document` is of a form that one document has.
bool AddDocument(const element& document, Records& out) {
  if (IsRun(document)) {
    out = RunOf(document);
    return true;
  }
  if (AddGenaiPerf(document, out)) return true;
  simdjson::dom::array list;
  if (document.get(list) == simdjson::SUCCESS) {
    bool any = false;
    for (const element one : list) {
      if (AddRecord(one, out)) {
        any = true;
      } else {
        ++out.unusable;
      }
    }
    return any;
  }
  for (const char* key : {"requests", "records", "request_metrics"}) {
    const auto inner = MemberOf(document, key);
    if (inner && inner->is_array() && AddDocument(*inner, out)) return true;
  }
  return AddRecord(document, out);
}

Result<Records> ParseLines(const std::string& name, std::string_view text,
                           const ReadOptions& options) {
  Records out;
  std::optional<Records> last_run;
  int64_t runs = 0;
  size_t unusable = 0;
  bool any = false;
  JsonText json;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto document = json.Parse(line);
    if (!document) {
      ++unusable;
      continue;
    }
    if (IsRun(*document)) {
      ++runs;
      if (!options.line || *options.line == runs) last_run = RunOf(*document);
    } else if (AddRecord(*document, out)) {
      any = true;
    } else {
      ++unusable;
    }
  }
  if (options.line && (runs == 0 || *options.line > runs)) {
    return Fail(
        InputError(name, fmt::format("has {}, and no run {}",
                                     Counted(runs, "run"), *options.line)));
  }
  if (last_run) return std::move(*last_run);
  if (!any) return Fail(NoRecords(name));
  out.unusable += unusable;
  return out;
}

// --- CSV by hand ---

Result<Records> ParseCsv(const std::string& name, std::string_view text) {
  CsvRows rows(text);
  if (!rows.Next()) return Fail(NoRecords(name));
  struct TimeColumn {
    int index = -1;
    double ns = 1e9;
  };
  TimeColumn start, first, last, scheduled;
  int id = -1, input = -1, output = -1, cached = -1;
  const auto& head = rows.fields();
  for (size_t i = 0; i < head.size(); ++i) {
    std::string_view column = head[i];
    double ns = 1e9;
    for (const auto& [ending, unit] :
         {std::pair<std::string_view, double>{"_ns", 1},
          {"_us", 1e3},
          {"_ms", 1e6},
          {"_s", 1e9}}) {
      if (!column.ends_with(ending)) continue;
      column.remove_suffix(ending.size());
      ns = unit;
      break;
    }
    const int at = static_cast<int>(i);
    if (column == "start") start = {at, ns};
    if (column == "first") first = {at, ns};
    if (column == "last") last = {at, ns};
    if (column == "scheduled") scheduled = {at, ns};
    if (column == "request" || column == "id") id = at;
    if (column == "input" || column == "input_tokens") input = at;
    if (column == "output" || column == "output_tokens") output = at;
    if (column == "cached" || column == "cached_tokens") cached = at;
  }
  if (start.index < 0 || first.index < 0) return Fail(NoRecords(name));
  Records out;
  const auto time = [&](const TimeColumn& column) -> std::optional<int64_t> {
    const std::string_view field = rows.Field(column.index);
    if (column.ns == 1) {
      if (const auto whole = ParseInt(field)) return whole;
    }
    const auto number = ParseDouble(field);
    if (!number || std::abs(*number * column.ns) > kMostNs) return std::nullopt;
    return std::llround(*number * column.ns);
  };
  while (rows.Next()) {
    Request request;
    request.id = std::string(rows.Field(id));
    if (request.id.empty())
      request.id = std::to_string(out.requests.size() + out.unusable);
    request.input_tokens = ParseInt(rows.Field(input));
    request.output_tokens = ParseInt(rows.Field(output));
    request.cached_tokens = ParseInt(rows.Field(cached));
    AddServerTimes({time(start), time(scheduled), time(first), time(last)},
                   "table of requests", std::move(request), out);
  }
  return out;
}

// Of equal ids the later get a number.
void MakeUnique(std::vector<Request>& requests) {
  std::set<std::string> known;
  for (Request& request : requests) {
    if (known.insert(request.id).second) continue;
    std::string id;
    for (int n = 2; id.empty() || !known.insert(id).second; ++n)
      id = fmt::format("{}#{}", request.id, n);
    request.id = std::move(id);
  }
}

}  // namespace

std::string_view ClockName(Clock clock) {
  return clock == Clock::kEpoch ? "epoch"
         : clock == Clock::kOwn ? "own"
                                : "none";
}

Result<Records> ParseRecords(const std::string& name, std::string text,
                             const ReadOptions& options) {
  const size_t begin = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (begin == std::string::npos)
    return Fail(InputError(name, "is empty, and no record of requests"));
  text.erase(0, begin);
  Result<Records> read = [&]() -> Result<Records> {
    if (text.front() != '{' && text.front() != '[') return ParseCsv(name, text);
    // Lines of documents are no document, and a run may be one alone.
    JsonText json;
    if (!options.line) {
      Records out;
      if (const auto document = json.Parse(text)) {
        if (!AddDocument(*document, out)) return Fail(NoRecords(name));
        return out;
      }
    }
    return ParseLines(name, text, options);
  }();
  if (!read) return read;
  if (read->requests.empty()) {
    return Fail(InputError(
        name,
        fmt::format("holds no request that can be used: {} failed, {} of a "
                    "warm-up, {} without times",
                    read->failed, read->warmup, read->unusable)));
  }
  if (options.clock && read->clock != Clock::kNone)
    read->clock = *options.clock;
  MakeUnique(read->requests);
  return read;
}

Result<Records> ReadRecords(const std::string& path,
                            const ReadOptions& options) {
  LAMINA_ASSIGN(std::string text, ReadAll(path, kMostRecordBytes));
  return ParseRecords(path, std::move(text), options);
}

}  // namespace lamina::serving
