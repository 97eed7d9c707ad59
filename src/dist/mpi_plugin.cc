// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_plugin.h"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/auxv.h>
#include <unistd.h>
#include <vector>

namespace lamina::dist {
namespace {

namespace fs = std::filesystem;

// A program without a loader cannot take plug-ins.
bool LinkedStatically() { return getauxval(AT_BASE) == 0; }

// Goes on as the program that shares the machine's libc, with the same words.
// Returns only when that one cannot be started.
std::string GoOnAs(const fs::path& program) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), {}};
  std::vector<char*> argv;
  for (size_t at = 0; at < words.size(); at = words.find('\0', at) + 1)
    argv.push_back(words.data() + at);
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return "this program is linked statically, and " + program.string() +
         ", which can load it, does not start";
}

}  // namespace

Result<std::unique_ptr<Channel>> OpenMpiChannel() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::array<fs::path, 2> places = {
      here / kMpiPluginFile, here / "../lib/lamina" / kMpiPluginFile};
  void* library = nullptr;
  std::string why = std::string(kMpiPluginFile) + " is not beside the program";
  if (LinkedStatically()) why = GoOnAs(here / "../lib/lamina/lamina-mpi");
  for (const fs::path& place : places) {
    if (LinkedStatically()) break;
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
