// SPDX-License-Identifier: Apache-2.0
//
// Names of hosts and users that a text gives away by its form: addresses, full
// host names, alice@node-7, user=alice, "hostname": "node-7".
#pragma once

#include <functional>
#include <string_view>

namespace lamina::render {

enum class NameKind { kHost, kUser, kSecret };

using NameSeen = std::function<void(NameKind kind, std::string_view name)>;

void FindNames(std::string_view text, const NameSeen& seen);

// An account or host that every machine has, and a number: no name at all.
bool IsSharedName(std::string_view name);

// Whether a name cannot be told from a word of the field where it stands alone,
// or is too short.
bool IsCommonWord(std::string_view name);

}  // namespace lamina::render
