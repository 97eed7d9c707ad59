// SPDX-License-Identifier: Apache-2.0
#include "base/plugin.h"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/auxv.h>
#include <unistd.h>
#include <vector>

namespace lamina {
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

tl::expected<void*, std::string> LoadPlugin(std::string_view file,
                                            const char* entry,
                                            std::string_view dynamic,
                                            bool shared_names) {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (LinkedStatically())
    return tl::make_unexpected(GoOnAs(here / "../lib/lamina" / dynamic));
  std::string why = std::string(file) + " is not beside the program";
  for (const fs::path& place : {here / file, here / "../lib/lamina" / file}) {
    if (!fs::exists(place, error)) continue;
    void* const library = dlopen(
        place.c_str(), RTLD_NOW | (shared_names ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library == nullptr) {
      if (const char* text = dlerror()) why = text;
      continue;
    }
    if (void* const found = dlsym(library, entry)) return found;
    why = std::string(file) + " is of another version";
  }
  return tl::make_unexpected(std::move(why));
}

}  // namespace lamina
