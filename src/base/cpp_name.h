// SPDX-License-Identifier: Apache-2.0
//
// Names of symbols for people: demangled, without what a cell has no room for,
// shortened inside.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// A C++ symbol name as source text; the name itself when it is none, or when
// its source text would be larger than 64 kB: 300 hostile bytes can stand for
// more text than any memory holds.
std::string Demangle(std::string_view name);

// At most `max_bytes` of a text, with "..." inside, so that at least `tail`
// bytes of its end stay, or less by part of a character: for names that differ
// there.
std::string ShortenInside(std::string_view text, size_t max_bytes, size_t tail);

// A name with "#" for every number: "iteration 3" and "iteration 17" are alike.
std::string WithoutNumbers(std::string_view name);

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
