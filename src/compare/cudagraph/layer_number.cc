// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/layer_number.h"

#include <map>
#include <re2/re2.h>
#include <string_view>
#include <utility>

namespace lamina::cudagraph {
namespace {

using tree::ModulePathId;
using tree::Modules;

// The number of a module that is named like a layer, by its class
// ("DecoderLayer_12") or by its attribute ("layers_12"); -1 for others. A part
// of a layer can have the word in its name, too ("LayerNorm_12"): without
// modules of its own it must end in it.
int64_t OwnNumber(std::string_view name, bool has_modules) {
  static const RE2 kEnds(
      R"((?:.*(?:(?:Layer|Block)[0-9]*|layers?|blocks?)|h)_([0-9]{1,9}))");
  static const RE2 kHas(R"(.*(?:Layer|Block)[A-Za-z0-9]*_([0-9]{1,9}))");
  int64_t number = -1;
  const re2::StringPiece text(name.data(), name.size());
  if (!RE2::FullMatch(text, kEnds, &number) && has_modules)
    RE2::FullMatch(text, kHas, &number);
  return number;
}

}  // namespace

// Of layers inside each other the outermost one counts that has siblings of its
// class: a "TransformerBlock_0" around all layers has none. Where only one
// layer was recorded, the innermost counts.
LayerNumbers::LayerNumbers(const trace::Trace& trace, const Modules& modules) {
  const auto& paths = modules.paths();
  std::vector<bool> has_modules(paths.size());
  std::map<std::pair<uint32_t, std::string_view>, size_t> siblings;
  const auto class_of = [&](const Modules::Path& path) {
    return std::pair(path.parent.value,
                     Modules::ClassName(trace.Text(path.name)));
  };
  for (const Modules::Path& path : paths) {
    if (path.parent.valid()) has_modules[path.parent.value] = true;
    ++siblings[class_of(path)];
  }
  std::vector<bool> repeated(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const Modules::Path& path = paths[i];
    int64_t number = -1;
    if (path.parent.valid()) {
      number = number_[path.parent.value];
      repeated[i] = repeated[path.parent.value];
    }
    if (!repeated[i]) {
      const int64_t own =
          OwnNumber(Modules::ShortName(trace.Text(path.name)), has_modules[i]);
      if (own >= 0) {
        number = own;
        repeated[i] = siblings[class_of(path)] > 1;
      }
    }
    number_.push_back(number);
  }
}

}  // namespace lamina::cudagraph
