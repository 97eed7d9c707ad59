// SPDX-License-Identifier: Apache-2.0
//
// Reader of the JSON that rocprofv3 writes. See README.md in this folder for
// the format.
#include <fmt/core.h>
#include <simdjson.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/cutter.h"
#include "base/json/scan.h"
#include "ingest/common/input.h"
#include "ingest/common/record_reader.h"
#include "ingest/common/rocm.h"
#include "ingest/rocprof/catalog.h"
#include "ingest/rocprof/reader.h"
#include "trace/builder.h"

namespace lamina::ingest::rocprof {
namespace {

constexpr std::string_view kRoot = "rocprofiler-sdk-tool";

using rocm::IntAt;

Domain DomainOf(std::string_view list) {
  if (list == "kernel_dispatch") return Domain::kKernels;
  if (list == "memory_copy") return Domain::kCopies;
  if (list == "memory_allocation") return Domain::kAllocations;
  if (list == "marker_api") return Domain::kMarkers;
  if (list.ends_with("_api")) return Domain::kCalls;
  if (list == "scratch_memory" || list.starts_with("pc_sample"))
    return Domain::kCounted;
  return Domain::kUnknown;
}

// The parts of the file around the records, by their path:
// rocprofiler-sdk-tool / process / part / ...
class DocumentRouter final : public json::Router {
 public:
  DocumentRouter(trace::TraceBuilder* builder, Catalog* catalog)
      : builder_(builder), catalog_(catalog) {}

  json::Action Route(json::Path path, char first) override {
    using json::Action;
    const bool container = first == '{' || first == '[';
    switch (path.size()) {
      case 0:
        return first == '{' ? Action::kDescend : Action::kSkip;
      case 1:
        return path[0] == kRoot && container ? Action::kDescend : Action::kSkip;
      case 2:
        if (!container) return Action::kSkip;
        process_ = processes_++;
        pid_ = 0;
        return Action::kDescend;
      case 3:
        if (path[2] == "metadata" || path[2] == "agents")
          return Action::kCapture;
        if (path[2] == "kernel_symbols" && first == '[')
          return Records(Domain::kSymbols, path[2]);
        if (container && (path[2] == "strings" || path[2] == "kernel_symbols" ||
                          path[2] == "buffer_records"))
          return Action::kDescend;
        return Action::kSkip;
      case 4:
        if (path[2] == "kernel_symbols")
          return first == '{' ? Action::kCapture : Action::kSkip;
        if (path[2] == "strings") {
          if (path[3] == "buffer_records") return Action::kCapture;
          if (path[3] != "marker_api") return Action::kSkip;
          return first == '[' ? Records(Domain::kMessages, path[3])
                              : Action::kDescend;
        }
        if (first != '[') return Action::kSkip;
        any_records_ = true;
        return Records(DomainOf(path[3]), path[3]);
      default:
        return path[3] == "marker_api" ? Action::kCapture : Action::kSkip;
    }
  }

  void Captured(json::Path path, std::string_view raw,
                uint64_t offset) override {
    simdjson::dom::element value;
    if (parser_.parse(raw.data(), raw.size()).get(value) != simdjson::SUCCESS) {
      diagnostics_.Add(trace::Effect::kOddity, "property_not_understood",
                       "A value outside the records has an unknown form.",
                       offset);
      return;
    }
    if (path[2] == "metadata") {
      ReadMetadata(value);
    } else if (path[2] == "agents") {
      ReadAgents(value);
    } else if (path[2] == "kernel_symbols") {
      ReadSymbol(path.back(), value, offset);
    } else if (path[3] == "buffer_records") {
      ReadOperations(value);
    } else {
      ReadMessage(path.back(), value, offset);
    }
  }

  void Lost(std::string_view reason, uint64_t offset, uint64_t bytes) override {
    diagnostics_.Add(
        trace::Effect::kLost, "input_damaged",
        "Part of the input cannot be read: " + std::string(reason) + ".",
        offset, 1, bytes);
  }

  bool any_records() const { return any_records_; }
  uint32_t processes() const { return processes_; }
  const trace::Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  json::Action Records(Domain domain, const std::string& name) {
    catalog_->AddArray({domain, name, process_, pid_});
    return json::Action::kRecords;
  }

  void ReadMetadata(simdjson::dom::element value) {
    pid_ = IntAt(value, "pid").value_or(0);
    std::string_view host;
    if (value.at_pointer("/node/hostname").get(host) == simdjson::SUCCESS)
      builder_->info().properties.emplace_back("hostname", JsonQuote(host));
    const auto init = IntAt(value, "init_time");
    const auto fini = IntAt(value, "fini_time");
    if (!init || !fini || *fini <= *init || !trace::IsUsableTime(*init) ||
        !trace::IsUsableTime(*fini))
      return;
    diagnostics_.Add(
        trace::Effect::kInfo, "process_time",
        "The profiled process took " + HumanTime(*fini - *init) +
            " from start to end, start-up and shut-down included; tables show "
            "the window of the records.");
  }

  void ReadAgents(simdjson::dom::element value) {
    simdjson::dom::array list;
    if (value.get_array().get(list) != simdjson::SUCCESS) return;
    for (const simdjson::dom::element element : list) {
      simdjson::dom::element id;
      if (element.at_key("id").get(id) != simdjson::SUCCESS) continue;
      const auto handle = IntAt(id, "handle");
      if (!handle) continue;
      constexpr int64_t kGpu = 2;
      Agent agent;
      agent.gpu = IntAt(element, "type") == kGpu;
      if (agent.gpu) {
        agent.number =
            IntAt(element, "logical_node_type_id")
                .value_or(IntAt(element, "gpu_index").value_or(trace::kNoInt));
        if (process_ == 0)
          builder_->info().devices.push_back(
              rocm::DeviceOf(element, agent.number));
      }
      catalog_->AddAgent(process_, *handle, agent);
    }
  }

  // Which number means which call differs between versions.
  void ReadOperations(simdjson::dom::element value) {
    simdjson::dom::array kinds;
    if (value.get_array().get(kinds) != simdjson::SUCCESS) return;
    size_t kind = 0;
    for (const simdjson::dom::element element : kinds) {
      std::vector<std::string> names;
      simdjson::dom::array list;
      if (element.at_key("operations").get_array().get(list) ==
          simdjson::SUCCESS) {
        for (const simdjson::dom::element name : list) {
          std::string_view text;
          if (name.get_string().get(text) != simdjson::SUCCESS) text = "";
          names.emplace_back(text);
        }
      }
      catalog_->AddOperations(process_, kind++, std::move(names));
    }
  }

  // Symbols as members id: symbol of an object.
  void ReadSymbol(std::string_view key, simdjson::dom::element value,
                  uint64_t offset) {
    auto id = IntAt(value, "kernel_id");
    if (!id) id = ParseInt(key);
    if (!id) return;
    for (const char* member : kSymbolNames) {
      std::string_view name;
      if (value.at_key(member).get_string().get(name) != simdjson::SUCCESS ||
          name.empty())
        continue;
      Definitions definitions;
      definitions.AddSymbol(
          *id, offset,
          {name, IntAt(value, kSymbolRegisters).value_or(trace::kNoInt)});
      catalog_->Define(process_, offset, std::move(definitions));
      return;
    }
  }

  // Messages as members id: text of an object.
  void ReadMessage(std::string_view key, simdjson::dom::element value,
                   uint64_t offset) {
    const auto id = ParseInt(key);
    std::string_view text;
    if (!id || value.get_string().get(text) != simdjson::SUCCESS) return;
    Definitions definitions;
    definitions.AddMessage(*id, text);
    catalog_->Define(process_, offset, std::move(definitions));
  }

  trace::TraceBuilder* builder_;
  Catalog* catalog_;
  simdjson::dom::parser parser_;
  trace::Diagnostics diagnostics_;
  uint32_t processes_ = 0;
  uint32_t process_ = 0;
  int64_t pid_ = 0;
  bool any_records_ = false;
};

int Sniff(const Input& input) {
  if (input.directory()) return 0;
  const std::string& head = input.head();
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || head[first] != '{') return 0;
  // The first key of the document.
  const size_t key = head.find_first_not_of(" \t\r\n", first + 1);
  if (key == std::string::npos || head[key] != '"') return 0;
  return std::string_view(head).substr(key + 1).starts_with(std::string(kRoot) +
                                                            "\"")
             ? 98
             : 0;
}

Result<trace::Trace> Read(Input& input, const ReadOptions& options) {
  LAMINA_ASSIGN(auto source, input.Open());
  return ReadRocprof(std::move(source), options);
}

}  // namespace

Result<trace::Trace> ReadRocprof(std::unique_ptr<ByteSource> source,
                                 const ReadOptions& options) {
  const std::string path = source->name();
  trace::TraceBuilder builder;
  builder.info().format = "rocprof";
  builder.info().file = path;
  builder.info().file_bytes = source->stored_size();
  builder.info().plain = source->plain();
  auto catalog = std::make_unique<Catalog>();
  DocumentRouter router(&builder, catalog.get());
  json::JsonStream stream(std::move(source), &router,
                          json::JsonStream::Options{});
  {
    const ScopedStage stage(options.times, "read");
    LAMINA_TRY(ReadRecords(stream, options, builder,
                           [&] { return MakeParser(catalog.get()); }));
  }
  catalog.reset();  // its memory is of use for the rest
  builder.info().input_bytes = stream.offset();
  builder.diagnostics().Merge(router.diagnostics());
  const ScopedStage stage(options.times, "index");
  trace::Trace trace = builder.Finish(options.threads);
  if (!router.any_records()) {
    return Fail(NothingRead(trace,
                            "the JSON document has no records of rocprofv3 "
                            "(\"buffer_records\")",
                            "record with rocprofv3 --runtime-trace "
                            "--output-format json"));
  }
  if (trace.slices.size() == 0) {
    return Fail(NothingRead(trace,
                            "the file has no kernel, copy, call or range",
                            "record with rocprofv3 --runtime-trace "
                            "--output-format json"));
  }
  rocm::NoteMissing(trace);
  return trace;
}

FormatInfo Format() {
  return {"rocprof",
          "rocprofv3 JSON",
          "kernels, calls, copies, roctx",
          &Sniff,
          &Read,
          "framework ops, shapes and modules, unless roctx ranges say them; "
          "Python stacks; groups and sizes of collectives."};
}

}  // namespace lamina::ingest::rocprof
