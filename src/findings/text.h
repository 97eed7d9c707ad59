// SPDX-License-Identifier: Apache-2.0
//
// Sentences of rules with numbers in them.
//
//   {name}            a value: its unit by its name (_ns, _bytes, _share)
//   {a|b|the step}    the first that is not empty; the last may be plain words
//   {n:copy|copies}   the number and the word that goes with it
//   {n?takes|take}    that word alone
//   {if name}..{end}  only where the value is there and not 0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lamina/table.h"

namespace lamina::findings {

// A value by its name; null for one that is not there.
using ValueOf = std::function<Value(std::string_view name)>;

// Texts of the trace are escaped for a terminal and cut at 60 characters.
std::string FillTemplate(std::string_view text, const ValueOf& value);

// What is wrong with the form of a template; empty: nothing.
std::string CheckTemplate(std::string_view text);

// What to do in at most `most` characters: names of the trace lose what stands
// in front ("aten::_scaled_dot_product_flash_attention": "flash_attention")
// until they fit.
std::string FillTodo(std::string_view text, const ValueOf& value, size_t most);

// What is wrong with such a text of a rule; empty: nothing.
std::string CheckTodo(std::string_view text);

// "1.2 ms", "3.4 MB", "12 %", "1,234".
std::string ShowValue(std::string_view name, const Value& value);

}  // namespace lamina::findings
