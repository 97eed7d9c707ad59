// SPDX-License-Identifier: Apache-2.0
//
// Messages for whoever asks. Who writes one does not know whether a command
// line, a program or an agent reads it: a parameter stands in it as
// "\u27e8layer\u27e9", a question as "\u27e8report()\u27e9", and a command line
// that is an example begins with "\u27e8lamina\u27e9". Fronts put their own
// names there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace lamina {

// What a name is called; nothing: who asks does not have it.
using NamesOf =
    std::function<std::optional<std::string>(std::string_view name)>;

// The text with names in place. A clause or a bracket that speaks of what who
// asks does not have is left out, unless nothing would be left.
std::string WithNames(std::string_view text, const NamesOf& names);
// The same for an error: what went wrong is said in any case, its hint may be
// left out.
Error WithNames(Error error, const NamesOf& names);

// As on a command line: "--layer", "lamina report", "lamina".
std::optional<std::string> OptionNames(std::string_view name);
// As in a program: "layer", "report", and no command lines.
std::optional<std::string> PlainNames(std::string_view name);

}  // namespace lamina
