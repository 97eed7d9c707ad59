// SPDX-License-Identifier: Apache-2.0
//
// What the records of a file refer to by number: agents, kernel symbols, names
// of operations, messages of markers. The thread that cuts the file adds to it
// while others look things up. An entry is seen by the record arrays that begin
// after it only, so that the result does not depend on who is faster.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace lamina::ingest::rocprof {

struct Agent {
  bool gpu = false;
  int64_t number = trace::kNoInt;  // of the GPU
};

struct Symbol {
  std::string name;
  int64_t registers = trace::kNoInt;
};

// What one array of records holds.
enum class Domain : uint8_t {
  kKernels,
  kCopies,
  kAllocations,
  kCalls,
  kMarkers,
  kCounted,  // records that are not used
};

struct RecordArray {
  Domain domain = Domain::kCounted;
  std::string name;      // "hip_api"
  uint32_t process = 0;  // element of the file
  int64_t pid = 0;
};

class Catalog {
 public:
  // The thread that cuts the file:
  void AddAgent(uint32_t process, int64_t handle, const Agent& agent);
  void AddSymbol(uint32_t process, int64_t id, Symbol symbol);
  void AddOperations(uint32_t process, size_t kind,
                     std::vector<std::string> names);
  void AddMessage(uint32_t process, int64_t id, std::string text);
  void AddArray(RecordArray array);

  // Any thread; `array` is that of the record that asks.
  RecordArray Array(uint32_t array) const;
  std::optional<Agent> FindAgent(uint32_t array, int64_t handle) const;
  std::optional<Symbol> FindSymbol(uint32_t array, int64_t id) const;
  // Empty when unknown.
  std::string Operation(uint32_t array, int64_t kind, int64_t operation) const;
  std::string Message(uint32_t array, int64_t id) const;

 private:
  using Key = std::pair<uint32_t, int64_t>;  // process, id
  template <class T>
  struct Entry {
    T value;
    size_t since;  // the first array that sees it
  };
  template <class T>
  using Map = absl::flat_hash_map<Key, Entry<T>>;
  template <class T>
  void Add(Map<T>& map, Key key, T value);
  // Null when the array does not see it; for holders of the lock.
  template <class T>
  const T* Seen(const Map<T>& map, uint32_t array, int64_t id) const;
  template <class T>
  std::optional<T> Find(const Map<T>& map, uint32_t array, int64_t id) const;

  mutable std::shared_mutex mutex_;
  std::vector<RecordArray> arrays_;
  Map<Agent> agents_;
  Map<Symbol> symbols_;
  Map<std::vector<std::string>> operations_;
  Map<std::string> messages_;
};

}  // namespace lamina::ingest::rocprof
