// SPDX-License-Identifier: Apache-2.0
//
// Reads a memory snapshot, which is a pickle: a program for a stack machine.
// This reader knows the opcodes that build numbers, texts, lists, tuples and
// dictionaries. It holds no code that could look up a global, call, construct
// or open anything, so nothing of a file can run and nothing is restricted:
// every other opcode is an error with its offset in the unpacked bytes.
//
// One pass over the bytes with a small buffer. Memory is a few dozen bytes per
// event and per distinct stack, whatever the size of the file, and at most
// about 128 bytes per byte of a hostile one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "memory/snapshot.h"

namespace lamina::memory {

struct ReadOptions {
  // A file that ends too early gives what is complete in it.
  bool salvage = false;
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// Whether the unpacked bytes of a file begin like a pickle of any protocol, or
// the file like an archive of torch.save: what ReadSnapshot answers for.
bool LooksLikePickle(std::string_view head);

// Errors: kInput for whatever is no snapshot.
Result<Snapshot> ReadSnapshot(ByteSource& source, const ReadOptions& options);
// Opens the file ("-": standard input), which may be packed.
Result<Snapshot> ReadSnapshotFile(const std::string& path,
                                  const ReadOptions& options);

}  // namespace lamina::memory
