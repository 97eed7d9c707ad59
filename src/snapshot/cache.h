// SPDX-License-Identifier: Apache-2.0
//
// The folder of the user in which opened traces are kept:
// $LAMINA_CACHE_DIR, $XDG_CACHE_HOME/lamina or $HOME/.cache/lamina, of this
// user only. It may be cleared at any time; nothing depends on what is in it. A
// folder that cannot be used is as an empty one.
//
// A file is found by what the system says of the input: device, inode, size,
// times of the last changes; further by the end of its name, by bytes from all
// over it, and by the build of lamina. What cannot be known so (pipes, folders,
// databases with a journal) is not kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/timer.h"
#include "snapshot/snapshot.h"
#include "trace/trace.h"

namespace lamina::snapshot {

// Inputs that are smaller after unpacking are parsed in the time that keeping
// them would save; LAMINA_CACHE=always keeps them, too.
inline constexpr uint64_t kLeastInputBytes = uint64_t{16} << 20;

// An input as it is now.
struct InputState {
  Key key{};
  std::string file;    // name in the cache
  std::string path;    // as it was given
  bool quiet = false;  // was not changed just now, so that a change would show
};

// Nothing for what cannot be kept.
std::optional<InputState> LookAt(const std::string& path);

// Whether the user wants no cache: LAMINA_CACHE=off.
bool IsOff();

// LAMINA_CACHE_LIMIT where it is set and no size; else empty. Then the usual
// limit holds.
std::string WrongLimit();

// A file of the cache, for people.
struct Kept {
  std::string file;
  std::string input;
  // "current"; "other build": of lamina; or what it is of no more use for:
  // "changed", "gone", "damaged".
  std::string state;
  uint64_t bytes = 0;
  int64_t used_s = 0;  // since 1970
};

class Cache {
 public:
  // `times` learns why something was not found or not kept; may be null.
  explicit Cache(StageTimes* times = nullptr);

  // The folder; empty: there is none to be had, and nothing is kept.
  const std::string& folder() const { return folder_; }
  uint64_t limit_bytes() const { return limit_; }

  // The trace of this input, if it was kept and is whole. A file that is not is
  // removed.
  std::optional<trace::Trace> Find(const InputState& input, int threads) const;

  // Keeps the trace as a reader gave it, if that pays. Files that were not used
  // for longest make room. Whatever goes wrong is no error.
  void Keep(const InputState& input, const trace::Trace& trace,
            int threads) const;

  // In order of last use, the latest first.
  std::vector<Kept> List() const;
  // Removes what no trace will be opened from, and then what was not used for
  // longest, down to the limit. How many files.
  uint64_t Prune() const;
  // Removes all of it. Errors: files that cannot be removed.
  Result<uint64_t> Clear() const;

 private:
  bool MakeFolder() const;
  void Note(std::string text) const;

  StageTimes* times_;
  std::string folder_;
  uint64_t limit_ = 0;
};

}  // namespace lamina::snapshot
