// SPDX-License-Identifier: Apache-2.0
//
// Graph dumps of any compiler: the content decides which reader takes a file.
// What all of them give is a Dump; Dump::dialect says where it comes from.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/dump.h"

namespace lamina::graph {

// "autodeploy", "fx", "fx-graph", "fx-table", "inductor", "mlir", "hlo",
// "trace" (TORCH_TRACE), "log" (TORCH_LOGS); empty: none of them. Looks at the
// first 64 KiB.
std::string_view RecogniseDialect(std::string_view text);

// What ParseOptions::dialect may name. Logs and traces are taken apart whatever
// it says: it then names which of their parts are read.
std::span<const std::string_view> Dialects();
// Why `name` is none of them, with the nearest; empty when it is one.
std::string WrongDialect(std::string_view name);

// Reads text of any dialect. Statements that cannot be read are told in
// `diagnostics`. Errors: no dialect; no graph in it, or none in the form that
// `options` ask for; with `strict` the first statement that cannot be read.
Result<Dump> ParseAnyDump(std::string name, std::string text,
                          const ParseOptions& options = {});

// Reads a file: plain, gzip or zstd; "-" is standard input. A file that does
// not begin like a dump is refused without reading the rest.
Result<Dump> ReadDump(const std::string& path,
                      const ParseOptions& options = {});

}  // namespace lamina::graph
