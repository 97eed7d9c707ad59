// SPDX-License-Identifier: Apache-2.0
//
// What the records of a file refer to by number: agents, kernel symbols, names
// of operations, messages of markers.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/tokens.h"
#include "base/pod_vector.h"
#include "base/string_pool.h"
#include "ingest/common/pytorch.h"
#include "ingest/common/record_reader.h"
#include "trace/trace.h"

namespace lamina::ingest::rocprof {

// The messages of markers by id. A long recording has one for each range, so a
// message is a row of numbers: texts without their numbers are few and shared
// (ingest/common/pytorch.h).

struct Message {
  int64_t id = 0;
  OpNumbers numbers;
  StringId pattern;    // text without its numbers
  uint32_t since = 0;  // the first array of records that sees it
};

// The messages of one part of the input.
class MessageRows {
 public:
  void Add(int64_t id, std::string_view text) {
    const OpNumbers numbers = CutNumbers(text, scratch_);
    rows_.push_back({id, numbers, patterns_.Intern(scratch_), 0});
  }
  bool empty() const { return rows_.empty(); }

 private:
  friend class MessageTable;
  PodVector<Message> rows_;
  StringPool patterns_;
  std::string scratch_;
};

// The messages of one process, which are found once they are settled.
class MessageTable {
 public:
  // Parts come in any order; `offset` is the place of one in the input. Texts
  // go to `patterns`.
  void Add(uint64_t offset, uint32_t since, MessageRows&& part,
           StringPool& patterns);
  // Whether messages that the array sees are not settled.
  bool IsPending(uint32_t array) const {
    return !pending_.empty() && pending_.begin()->second[0].since <= array;
  }
  // Settles what the array sees. All of it must have been added.
  void Settle(uint32_t array);

  // Of equal ids the first in the input counts. Null when there is none that
  // the array sees. `hint` is where the last one stood: messages and markers
  // are in similar orders.
  const Message* Find(uint32_t array, int64_t id, size_t& hint) const;

 private:
  size_t Place(int64_t id, size_t hint) const;

  std::map<uint64_t, PodVector<Message>> pending_;  // by place in the input
  // Settled: ids ascend. Sorted once, when the first array asks; what comes
  // later and would have to be put in between is in the map, so that a file
  // with as many arrays as messages takes no longer.
  PodVector<Message> rows_;
  absl::flat_hash_map<int64_t, Message> others_;
};

// What the records of a file refer to by number: agents, kernel symbols, names
// of operations, messages of markers. The thread that cuts the file adds the
// small lists; symbols and messages are long ones, which all threads parse like
// records. An entry is seen by the record arrays that begin after it only, so
// that the result does not depend on who is faster.

struct Agent {
  bool gpu = false;
  int64_t number = trace::kNoInt;  // of the GPU
};

struct Symbol {
  std::string_view name;
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
  kUnknown,  // records of a list that no version known here writes
  // Definitions, no events:
  kSymbols,
  kMessages,
};
inline bool IsDefinitions(Domain domain) {
  return domain == Domain::kSymbols || domain == Domain::kMessages;
}

struct RecordArray {
  Domain domain = Domain::kCounted;
  std::string name;      // "hip_api"
  uint32_t process = 0;  // element of the file
  int64_t pid = 0;
};

// Symbols and messages of one part of the input.
class Definitions {
 public:
  // `offset` is the place in the input: of equal ids the first counts.
  void AddSymbol(int64_t id, uint64_t offset, const Symbol& symbol) {
    symbols_.push_back(
        {id, offset, {texts_.Copy(symbol.name), symbol.registers}});
  }
  // In the order of the input.
  void AddMessage(int64_t id, std::string_view text) {
    messages_.Add(id, text);
  }

 private:
  friend class Catalog;
  struct SymbolRow {
    int64_t id;
    uint64_t offset;
    Symbol symbol;
  };
  std::vector<SymbolRow> symbols_;
  Arena texts_;
  MessageRows messages_;
};

class Catalog {
 public:
  // The thread that cuts the file:
  void AddAgent(uint32_t process, int64_t handle, const Agent& agent);
  void AddOperations(uint32_t process, size_t kind,
                     std::vector<std::string> names);
  void AddArray(RecordArray array);
  // Definitions that are no array; `offset` is their place in the input.
  void Define(uint32_t process, uint64_t offset, Definitions&& definitions);
  // A chunk of an array of definitions goes to a thread, which must call
  // Finish() with what is in it.
  void Claim() {
    const std::lock_guard lock(claims_mutex_);
    ++claims_;
  }

  // Any thread:
  void Finish(uint32_t array, uint64_t offset, Definitions&& definitions);
  // Returns when nothing claimed so far is unfinished.
  void AwaitDefinitions();

  // `array` is that of the record that asks.
  RecordArray Array(uint32_t array) const;
  std::optional<Agent> FindAgent(uint32_t array, int64_t handle) const;
  std::optional<Symbol> FindSymbol(uint32_t array, int64_t id) const;
  // Empty when unknown.
  std::string Operation(uint32_t array, int64_t kind, int64_t operation) const;

 private:
  using Key = std::pair<uint32_t, int64_t>;  // process, id
  template <class T>
  struct Entry {
    T value;
    size_t since;         // the first array that sees it
    uint64_t offset = 0;  // in the input
  };
  template <class T>
  using Map = absl::flat_hash_map<Key, Entry<T>>;
  template <class T>
  void Add(Map<T>& map, Key key, T value);
  void AddSymbols(uint32_t process, size_t since,
                  const std::vector<Definitions::SymbolRow>& rows);
  void Insert(uint32_t process, size_t since, uint64_t offset,
              Definitions&& definitions);
  // Null when the array does not see it; for holders of the lock.
  template <class T>
  const T* Seen(const Map<T>& map, uint32_t array, int64_t id) const;
  template <class T>
  std::optional<T> Find(const Map<T>& map, uint32_t array, int64_t id) const;

  mutable std::shared_mutex mutex_;
  std::vector<RecordArray> arrays_;
  Map<Agent> agents_;
  Map<std::vector<std::string>> operations_;
  Map<Symbol> symbols_;
  Arena symbol_texts_;

  std::mutex claims_mutex_;
  std::condition_variable finished_;
  int claims_ = 0;

 public:
  // The messages that an array sees, held while many are looked up. Call
  // AwaitDefinitions() before.
  class Messages {
   public:
    Messages(Catalog& catalog, uint32_t array);
    // Null when unknown.
    const Message* Find(int64_t id) {
      return table_ != nullptr ? table_->Find(array_, id, hint_) : nullptr;
    }
    std::string_view Pattern(StringId pattern) const {
      return patterns_[pattern];
    }

   private:
    std::shared_lock<std::shared_mutex> lock_;
    const StringPool& patterns_;
    const MessageTable* table_ = nullptr;
    uint32_t array_;
    size_t hint_ = 0;
  };

 private:
  std::shared_mutex messages_mutex_;
  std::map<uint32_t, MessageTable> messages_;  // by process
  StringPool patterns_;
};

// One kernel symbol or one message of a marker, as records of their lists.

// Members of a symbol. Of the names the first is shown.
inline constexpr std::array<const char*, 3> kSymbolNames = {
    "formatted_kernel_name", "demangled_kernel_name", "kernel_name"};
inline constexpr const char* kSymbolRegisters = "arch_vgpr_count";

class Definition {
 public:
  // Reads the object at `token` and moves behind it; false when it breaks the
  // grammar.
  bool Read(const json::Tokens& tokens, size_t& token);
  // Adds what was read; `offset` is that of the record.
  void AddTo(Definitions& definitions, Domain domain, uint64_t offset) const;

 private:
  std::optional<int64_t> id_;
  int64_t registers_ = trace::kNoInt;
  std::array<std::string_view, kSymbolNames.size()> names_;  // of a kernel
  std::string_view text_;
};

}  // namespace lamina::ingest::rocprof
