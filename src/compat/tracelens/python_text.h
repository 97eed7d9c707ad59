// SPDX-License-Identifier: Apache-2.0
//
// Structured cells of the TraceLens layout are Python literals.
#pragma once

#include <string>
#include <string_view>

namespace lamina::compat::tracelens {

// Canonical JSON text of a list as a Python literal: tuples
// "((512,), (141, 512), ())" or lists "[[512], [141, 512], []]".
std::string PythonTuple(std::string_view json);
std::string PythonList(std::string_view json);

}  // namespace lamina::compat::tracelens
