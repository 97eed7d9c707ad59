// SPDX-License-Identifier: Apache-2.0
//
// What a store keeps of one run: what it was, and its units with their times,
// so that it can be compared later without its trace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compare/runs/compare.h"
#include "compare/runs/differences.h"

namespace lamina::runstore {

using Tags = std::map<std::string, std::string>;

// Of the units of one class: what a run is compared by.
struct ClassTimes {
  size_t units = 0;  // that were kept
  int64_t p10_ns = 0, p50_ns = 0, p90_ns = 0;
  double mean_ns = 0;
};

struct ClassRecord {
  runs::Phase phase = runs::Phase::kPass;
  std::string name;     // of their load
  size_t left_out = 0;  // units of the phase, in its first class
  ClassTimes unit, kernel_time, busy;
  double share = 0;  // of the time of all units that were kept
};

struct Record {
  std::string content;  // SHA-256 of the bytes of the trace, in hex
  std::string name, source, format;
  uint64_t bytes = 0;
  std::optional<int64_t> recorded_ns;  // since 1970
  std::optional<int64_t> ordinal;      // given
  // Runs of equal key form a series: model, device, world, type of most matrix
  // products, phases, and the tags `model` and `config`.
  std::string key;
  std::string model, device, type;  // empty: not known
  size_t devices = 0, ranks = 1;
  std::optional<int64_t> world;
  std::string basis;  // of the units
  Tags tags, environment;
  runs::Units units;  // settled; of very many some, evenly taken
  std::vector<ClassRecord> classes;
  runs::Account account;
};

// SHA-256 of files, in hex: of one its own, of several that of theirs in order.
// Errors: one cannot be read.
Result<std::string> ContentOf(const std::vector<std::string>& files);

// "run-00" of "runs/run-00.trace.gz".
std::string NameOf(const std::string& path);

// Tags of the commit: of the work tree of git that holds `path`, which is read
// as files (no program runs), and of the variables that CI services set.
Tags CommitTags(const std::string& path);

// Of the ranks of one run; where there are no steps and no passes, all device
// work is one unit. Leaves content, name, source, bytes, tags, key. Errors: it
// has no device work, or no whole unit; data files that cannot be used.
Result<Record> RecordOf(const std::vector<const runs::Context*>& ranks);

// A record for a comparison.
runs::KeptSide SideOf(Record record);

// The key of a record with its tags.
std::string KeyOf(const Record& record);

// Units as bytes, and back. Errors: they are damaged.
std::string PackUnits(const std::vector<ClassRecord>& classes,
                      const runs::Units& units);
Result<runs::Units> UnpackUnits(const std::vector<ClassRecord>& classes,
                                std::string_view bytes);

}  // namespace lamina::runstore
