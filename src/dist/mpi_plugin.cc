// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_plugin.h"

#include <string>

#include "base/plugin.h"

namespace lamina::dist {

Result<std::unique_ptr<Channel>> OpenMpiChannel() {
  // Parts of Open MPI look for its symbols among those of everyone.
  const auto entry =
      LoadPlugin(kMpiPluginFile, kMpiPluginEntry, "lamina-mpi", true);
  if (!entry) {
    return Fail(UsageError("⟨engine⟩ mpi: " + entry.error(),
                           "build lamina where MPI is installed "
                           "(libopenmpi-dev), or use ⟨engine⟩ files"));
  }
  using Entry = Channel* (*)(int);
  std::unique_ptr<Channel> channel(
      reinterpret_cast<Entry>(*entry)(kMpiPluginInterface));
  if (channel == nullptr) {
    return Fail(UsageError(std::string("⟨engine⟩ mpi: ") + kMpiPluginFile +
                               " is of another version",
                           "build the program and the plug-in together"));
  }
  return channel;
}

}  // namespace lamina::dist
