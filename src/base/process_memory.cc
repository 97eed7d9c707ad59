// SPDX-License-Identifier: Apache-2.0
#include "base/process_memory.h"

#include <cstdio>
#include <string>
#include <unistd.h>

namespace lamina {

ProcessMemory MemoryOf(pid_t process) {
  const std::string name = "/proc/" + std::to_string(process) + "/statm";
  std::FILE* const file = std::fopen(name.c_str(), "re");
  if (file == nullptr) return {};
  // Pages: size, resident, shared, text, lib, data, dirty.
  unsigned long long resident = 0, shared = 0, data = 0;
  const int got = std::fscanf(file, "%*u %llu %llu %*u %*u %llu", &resident,
                              &shared, &data);
  std::fclose(file);
  if (got != 3) return {};
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return {resident * page, resident > shared ? (resident - shared) * page : 0,
          data * page};
}

ProcessMemory MemoryOfThisProcess() { return MemoryOf(::getpid()); }

}  // namespace lamina
