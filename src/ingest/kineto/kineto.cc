// SPDX-License-Identifier: Apache-2.0
//
// Reader of the JSON that torch.profiler (Kineto) writes, and of Chrome traces
// in general. See README.md in this folder for the format.
#include <algorithm>
#include <fmt/core.h>
#include <mutex>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/cutter.h"
#include "base/json/scan.h"
#include "ingest/common/format.h"
#include "ingest/common/input.h"
#include "ingest/common/pytorch.h"
#include "ingest/common/record_reader.h"
#include "ingest/kineto/device_tracks.h"
#include "ingest/kineto/reader.h"
#include "trace/builder.h"

namespace lamina::ingest::kineto {
namespace {

// Longer values outside the events are facts about the user's machine that no
// analysis reads.
constexpr size_t kMaxProperty = 4096;

// Members of the document around the events.
class DocumentRouter final : public json::Router {
 public:
  explicit DocumentRouter(trace::TraceBuilder* builder) : builder_(builder) {}

  json::Action Route(json::Path path, char first) override {
    if (path.empty()) {
      bare_list_ = first == '[';
      return bare_list_ ? Records() : json::Action::kDescend;
    }
    if (path[0] == "metadata") {
      // What tools add may be long; texts in it may say who and where.
      if (path.size() == 1 && first == '{') return json::Action::kDescend;
      return path.size() == 2 && first == '"' ? json::Action::kCapture
                                              : json::Action::kSkip;
    }
    if (path.size() > 1) return json::Action::kSkip;
    if (path[0] == "traceEvents" && first == '[') return Records();
    return json::Action::kCapture;
  }

  void Captured(json::Path path, std::string_view raw,
                uint64_t offset) override {
    const std::string& key = path.back();
    trace::Info& info = builder_->info();
    if (path.size() > 1) {
      if (raw.size() <= kMaxProperty)
        info.properties.emplace_back(key, std::string(raw));
    } else if (key == "deviceProperties") {
      if (!ReadDeviceProperties(raw, info)) BadProperty(key, offset);
    } else if (key == "distributedInfo") {
      if (!ReadDistributedInfo(raw, info)) BadProperty(key, offset);
    } else if (key == "baseTimeNanoseconds") {
      info.base_time_ns = ParseInt(raw);
    } else if (key == "displayTimeUnit" && raw.size() >= 2) {
      info.display_time_unit =
          json::DecodeString(raw.substr(1, raw.size() - 2));
    } else if (raw.size() <= kMaxProperty) {
      info.properties.emplace_back(key, std::string(raw));
    }
  }

  void Lost(std::string_view reason, uint64_t offset, uint64_t bytes) override {
    if (bare_list_ && reason == json::kListWithoutEnd) {
      diagnostics_.Add(
          trace::Effect::kOddity, "list_without_end",
          "The list of events has no end, which this format allows.", offset);
      return;
    }
    std::string id = "input_" + std::string(reason);
    std::replace_if(
        id.begin(), id.end(),
        [](char c) { return !((c >= 'a' && c <= 'z') || c == '_'); }, '_');
    std::string text = std::string(reason) + ".";
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
    diagnostics_.Add(trace::Effect::kLost, id, text, offset, 1, bytes);
  }

  std::string_view recovery_key() const override { return "\"traceEvents\""; }

  bool any_records() const { return any_records_; }
  // Of its own: parts of the trace are appended by other threads meanwhile.
  trace::Diagnostics& diagnostics() { return diagnostics_; }

 private:
  json::Action Records() {
    any_records_ = true;
    return json::Action::kRecords;
  }

  void BadProperty(std::string_view key, uint64_t offset) {
    diagnostics_.Add(trace::Effect::kOddity, "property_not_understood",
                     "A value outside the events has an unknown form: " +
                         std::string(key) + ".",
                     offset);
  }

  trace::TraceBuilder* builder_;
  trace::Diagnostics diagnostics_;
  bool any_records_ = false;
  bool bare_list_ = false;  // the document is the list
};

// {"traceEvents": ... or [{"ph": ...: enough of an event must be in sight.
int Sniff(const Input& input) {
  if (input.directory()) return 0;
  const std::string& head = input.head();
  size_t first = head.find_first_not_of(" \t\r\n");
  if (head.starts_with("\xEF\xBB\xBF"))
    first = head.find_first_not_of(" \t\r\n", 3);
  if (first == std::string::npos) return 0;
  if (head[first] != '{' && head[first] != '[') return 0;
  if (head.find("\"traceEvents\"") != std::string::npos) return 90;
  if (head.find("\"ph\"") != std::string::npos) return 80;
  if (head.find("\"schemaVersion\"") != std::string::npos ||
      head.find("\"deviceProperties\"") != std::string::npos)
    return 70;
  // Some other JSON: the reader says what is missing.
  return 5;
}

Result<trace::Trace> Read(Input& input, const ReadOptions& options) {
  LAMINA_ASSIGN(auto source, input.Open());
  return ReadKineto(std::move(source), options);
}

}  // namespace

Result<trace::Trace> ReadKineto(std::unique_ptr<ByteSource> source,
                                const ReadOptions& options) {
  const std::string path = source->name();
  trace::TraceBuilder builder;
  builder.info().format = "kineto";
  builder.info().file = path;
  builder.info().file_bytes = source->stored_size();
  builder.info().plain = source->plain();
  DocumentRouter router(&builder);
  json::JsonStream stream(std::move(source), &router,
                          json::JsonStream::Options{});
  {
    const ScopedStage stage(options.times, "read");
    LAMINA_TRY(ReadRecords(stream, options, builder, &MakeEventParser));
  }
  builder.diagnostics().Merge(router.diagnostics());
  builder.info().input_bytes = stream.offset();
  const ScopedStage stage(options.times, "index");
  trace::Trace trace = builder.Finish(options.threads, &ReadDeviceTracks);
  if (!router.any_records()) {
    return Fail(NothingRead(trace,
                            "the JSON document has no list of events "
                            "(\"traceEvents\")",
                            "give a trace of torch.profiler or another Chrome "
                            "trace"));
  }
  const bool nothing = trace.slices.size() == 0 && trace.flows.size() == 0 &&
                       trace.instants.size() == 0 && trace.counters.size() == 0;
  if (nothing) {
    std::string why = "the list of events has no event";
    if (trace.info.events > 0) {
      why = fmt::format("none of the {} events can be used", trace.info.events);
    }
    return Fail(NothingRead(trace, std::move(why),
                            "record the trace again and let the profiler "
                            "finish writing"));
  }
  return trace;
}

FormatInfo Format() {
  return {
      "kineto",
      "PyTorch profiler, Chrome JSON",
      "ops, shapes, stacks, kernels, memory",
      &Sniff,
      &Read,
      "values of tensors; measured FLOPs and memory traffic of kernels; the "
      "op behind a kernel of a replayed device graph.",
      true};
}

}  // namespace lamina::ingest::kineto
