// SPDX-License-Identifier: Apache-2.0
//
// One thread that makes the records of a file: names and caches of its own.
#pragma once

#include <absl/container/flat_hash_map.h>

#include "ingest/common/rocm.h"
#include "ingest/rpd/call_tables.h"

namespace lamina::ingest::rpd {

class FileThread {
 public:
  FileThread(const CallTables& tables, const Database& database,
             Filler* filler);

  // id, pid, tid, start, end, name, arguments
  void Call(const Row& row, IdTable<CallFacts>& calls);
  // id, device, queue, start, end, description, type
  void Op(const Row& row);
  // kind of device, device, kind of sample, time, value
  void Sample(const Row& row);

 private:
  StringId Pid(int64_t pid);
  std::string_view Text(StringId id) const {
    return id.valid() ? filler_.names().Text(id) : std::string_view();
  }
  void AddCopy(const rocm::Dispatch& op, const int64_t* api, StringId type);
  void AddKernel(rocm::Dispatch& op, const int64_t* api, StringId type,
                 StringId description);

  const CallTables& tables_;
  Filler& filler_;
  rocm::Writer writer_;
  TextNames strings_, unique_;
  absl::flat_hash_map<int64_t, StringId> pids_;
};

}  // namespace lamina::ingest::rpd
