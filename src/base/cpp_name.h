// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// A kernel's C++ name in fewer characters, for a cell that cannot hold all of
// it: without return type, parameters, namespaces and the lambdas inside a
// function.
//
//   void at::native::elementwise_kernel<128, 4, at::native::f(at::T&)::
//     {lambda()#3}>(int)                     elementwise_kernel<128, 4, f>
//   _ZN2at6native3addIfEEvPT_              add<float>
//
// Two names may become one: never a key. What is no such name, an op's
// (aten::mul) too, stays as it is, up to 4 kB.
std::string ShortCppName(std::string_view name);

// The part of a name in front of template and call arguments, with namespaces
// and without a return type:
//
//   void at::native::elementwise_kernel<128>(int)
//     at::native::elementwise_kernel
std::string_view QualifiedCppName(std::string_view name);

}  // namespace lamina
