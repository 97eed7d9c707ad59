// SPDX-License-Identifier: Apache-2.0
//
// Types and values of arguments as profilers record them, in the words of
// torch and JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lamina::engine {

// What torch calls a recorded element type; empty when unknown.
std::string_view TorchType(std::string_view recorded);

// A recorded value ("1", "0.5", "True", "[1, 2]", "tanh") as JSON. Nothing
// when it is none of these: other text may say something of the user.
std::optional<std::string> JsonOf(std::string_view text);

}  // namespace lamina::engine
