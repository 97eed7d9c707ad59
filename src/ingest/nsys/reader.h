// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/leftovers.h"
#include "base/status.h"
#include "ingest/common/database.h"
#include "ingest/common/format.h"
#include "trace/trace.h"

namespace lamina::ingest::nsys {

// Reads an export of Nsight Systems.
Result<trace::Trace> ReadNsys(const Database& database,
                              const ReadOptions& options);

// Recordings of Nsight Systems (.nsys-rep) have a closed format: its own
// exporter turns them into a database.

// A database that is removed when it is no longer needed.
class ExportedFile {
 public:
  // Errors: no exporter on this machine (says how to export elsewhere), or it
  // fails.
  static Result<std::unique_ptr<ExportedFile>> Make(const std::string& path);
  const std::string& path() const { return path_; }

 private:
  ExportedFile() = default;
  Leftover folder_;
  std::string path_;
};

}  // namespace lamina::ingest::nsys
