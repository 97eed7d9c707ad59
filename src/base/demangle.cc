// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <csetjmp>

// Else libiberty declares a basename() other than that of <cstring>.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace lamina {
namespace {

constexpr size_t kMaxMangled = 4096;
constexpr size_t kMaxText = size_t{64} << 10;

struct Text {
  std::string text;
  std::jmp_buf full;
};

// The demangler hands over its text in pieces and cannot be told to stop. It
// keeps what it allocates on the stack, so leaving it by a jump leaks nothing.
void Append(const char* piece, size_t size, void* opaque) {
  Text& out = *static_cast<Text*>(opaque);
  if (out.text.size() + size > kMaxText) std::longjmp(out.full, 1);
  out.text.append(piece, size);
}

// False when the text is too large. Nothing here has a destructor that the
// jump could skip.
bool Expand(const char* symbol, Text* out) {
  if (setjmp(out->full) != 0) return false;
  return cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_TYPES, Append,
                                    out) != 0;
}

}  // namespace

std::string Demangle(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > kMaxMangled)
    return std::string(name);
  const std::string symbol(name.substr(0, name.find(".kd")));
  Text out;
  return Expand(symbol.c_str(), &out) ? out.text : std::string(name);
}

}  // namespace lamina
