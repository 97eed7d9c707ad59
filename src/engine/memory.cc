// SPDX-License-Identifier: Apache-2.0
#include "engine/memory.h"

#include <filesystem>
#include <limits>

#include "analysis/memory/join.h"
#include "analysis/memory/memory.h"
#include "base/decimal.h"
#include "base/opened.h"
#include "engine/session.h"
#include "memory/diff.h"
#include "memory/timeline_file.h"
#include "memory/unpickler.h"
#include "rules/document.h"

namespace lamina::engine {
namespace {

// Of files of export_memory_timeline.
constexpr size_t kMostTimeline = size_t{1} << 30;
constexpr size_t kTimelineRows = 2000;

Result<std::unique_ptr<Session>> OpenTrace(const std::string& path,
                                           const MemoryOptions& options) {
  OpenOptions open;
  open.threads = options.threads;
  open.rules_dir = options.rules_dir;
  open.times = options.times;
  open.progress = options.progress;
  open.read = options.read;
  return Session::Open(path, open);
}

// What a trace of the same run adds to a snapshot.
Result<ResultSet> Join(const MemoryOptions& options,
                       memory::Recording* recording) {
  LAMINA_ASSIGN(auto session, OpenTrace(options.trace, options));
  analysis::Settings settings;
  settings.threads = options.threads;
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  const ScopedStage stage(options.times, "join");
  return analysis::memory::JoinTrace(*context, recording);
}

// Of a trace: what its memory events say.
Result<ResultSet> TablesOfTrace(const std::string& path,
                                const MemoryOptions& options) {
  LAMINA_ASSIGN(auto session, OpenTrace(path, options));
  analysis::Settings settings;
  settings.threads = options.threads;
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  analysis::memory::Options asked;
  asked.device = options.device;
  asked.every_kind = options.tables.every_kind;
  asked.timeline = true;
  asked.by = options.tables.by;
  const ScopedStage stage(options.times, "memory");
  ResultSet result = analysis::memory::MakeMemory(*context, asked);
  if (result.tables.empty()) {
    return Fail(InputError(
        path,
        options.device.empty()
            ? "the trace has no memory events of a device"
            : "the trace has no memory events of device " + options.device,
        "record with profile_memory=True (nsys: --cuda-memory-usage=true; "
        "rocprofv3: --memory-allocation-trace), or give a snapshot of "
        "torch.cuda.memory._dump_snapshot"));
  }
  return result;
}

Result<memory::TableOptions> WithDevice(const MemoryOptions& options) {
  memory::TableOptions out = options.tables;
  if (options.device.empty()) return out;
  const auto device = ParseInt(options.device);
  if (!device || *device < 0) {
    return Fail(UsageError(
        "⟨device⟩: '" + options.device + "' is no number of a device",
        "a snapshot counts devices from 0"));
  }
  out.device = *device;
  return out;
}

// Whether the file is for the reader of snapshots, which knows best what is
// wrong with something like one.
bool IsForSnapshots(const std::string& path) {
  const auto head = ReadHead(path, 2);
  if (head) return memory::LooksLikePickle(*head);
  // An archive that cannot be unpacked, or nothing at all.
  return path.ends_with(".pickle") || path.ends_with(".pkl") ||
         path.ends_with(".pt");
}

}  // namespace

bool IsMemorySnapshot(const std::string& path) {
  // A look into a pipe would take its first bytes from the reader.
  std::error_code none_there;
  if (!std::filesystem::is_regular_file(NameToRead(path).text(), none_there))
    return false;
  const auto head = ReadHead(path, 2);
  return head && head->size() == 2 && (*head)[0] == '\x80';
}

Result<memory::Recording> OpenRecording(const std::string& path,
                                        const MemoryOptions& options) {
  LAMINA_ASSIGN(const memory::TableOptions tables, WithDevice(options));
  const rules::DataSet data(options.rules_dir);
  LAMINA_ASSIGN(auto rules, memory::Rules::Load(data));
  LAMINA_ASSIGN(const auto allocator, memory::AllocatorRules::Load(data));
  memory::ReadOptions read;
  read.salvage = options.salvage;
  read.progress = options.progress;
  Result<memory::Snapshot> snapshot = [&] {
    const ScopedStage stage(options.times, "read");
    return memory::ReadSnapshotFile(path, read);
  }();
  if (!snapshot) return Fail(snapshot.error());
  const ScopedStage stage(options.times, "replay");
  return memory::MakeRecording(std::move(*snapshot), rules, allocator, tables);
}

Result<ResultSet> MakeMemoryTables(const std::string& path,
                                   const MemoryOptions& options,
                                   Recordings* keep) {
  // A pipe is read once: it can hold a snapshot only.
  const bool piped = path == "-";
  if (const auto head = piped ? Result<std::string>() : ReadHead(path, 64);
      head && memory::LooksLikeTimeline(*head)) {
    LAMINA_ASSIGN(const std::string text, ReadAll(path, kMostTimeline));
    return memory::ReadTimeline(path, text,
                                options.tables.full
                                    ? std::numeric_limits<size_t>::max()
                                    : kTimelineRows);
  }
  if (!piped && (path.ends_with(".html") || path.ends_with(".htm"))) {
    return Fail(InputErrorAt(
        path, 0, "holds a picture of a memory timeline at most",
        "export it as .raw.json.gz or .json with export_memory_timeline"));
  }
  if (!piped && !IsForSnapshots(path)) return TablesOfTrace(path, options);
  LAMINA_ASSIGN(memory::Recording recording, OpenRecording(path, options));
  ResultSet joined;
  if (!options.trace.empty()) {
    LAMINA_ASSIGN(joined, Join(options, &recording));
  }
  const ScopedStage stage(options.times, "tables");
  auto tables = memory::MakeTables(recording, options.tables);
  if (tables) tables->Append(std::move(joined));
  if (keep != nullptr) keep->push_back(std::move(recording));
  return tables;
}

Result<ResultSet> DiffMemory(const std::string& a, const std::string& b,
                             const MemoryOptions& options, Recordings* keep) {
  LAMINA_ASSIGN(memory::Recording first, OpenRecording(a, options));
  LAMINA_ASSIGN(memory::Recording second, OpenRecording(b, options));
  auto tables = memory::DiffRecordings(first, second);
  if (keep != nullptr) {
    keep->push_back(std::move(first));
    keep->push_back(std::move(second));
  }
  return tables;
}

}  // namespace lamina::engine
