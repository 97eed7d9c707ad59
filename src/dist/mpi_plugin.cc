// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_plugin.h"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <string>

namespace lamina::dist {

Result<std::unique_ptr<Channel>> OpenMpiChannel() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::array<fs::path, 2> places = {
      here / kMpiPluginFile, here / "../lib/lamina" / kMpiPluginFile};
  void* library = nullptr;
  std::string why = std::string(kMpiPluginFile) + " is not beside the program";
  for (const fs::path& place : places) {
    if (!fs::exists(place, error)) continue;
    // Parts of Open MPI look for its symbols among those of everyone.
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) break;
    if (const char* text = dlerror()) why = text;
  }
  if (library == nullptr) {
    return Fail(UsageError("--engine mpi: " + why,
                           "build lamina where MPI is installed "
                           "(libopenmpi-dev), or use --engine files"));
  }
  using Entry = Channel* (*)(int);
  const auto open = reinterpret_cast<Entry>(dlsym(library, kMpiPluginEntry));
  std::unique_ptr<Channel> channel(open != nullptr ? open(kMpiPluginInterface)
                                                   : nullptr);
  if (channel == nullptr) {
    return Fail(UsageError(std::string("--engine mpi: ") + kMpiPluginFile +
                               " is of another version",
                           "build the program and the plug-in together"));
  }
  return channel;
}

}  // namespace lamina::dist
