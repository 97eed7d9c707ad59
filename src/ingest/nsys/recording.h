// SPDX-License-Identifier: Apache-2.0
//
// Recordings of Nsight Systems (.nsys-rep) have a closed format: its own
// exporter turns them into a database.
#pragma once

#include <memory>
#include <string>

#include "base/leftovers.h"
#include "base/status.h"

namespace lamina::ingest::nsys {

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
