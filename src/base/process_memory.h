// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <sys/types.h>

namespace lamina {

// Memory of a process as the kernel counts it, in bytes; zeros where it does
// not say.
struct ProcessMemory {
  uint64_t resident_bytes = 0;  // lies in RAM
  uint64_t own_bytes = 0;       // of these what no file holds
  uint64_t data_bytes = 0;      // what RLIMIT_DATA limits, used or not
};

ProcessMemory MemoryOf(pid_t process);
ProcessMemory MemoryOfThisProcess();

}  // namespace lamina
