// SPDX-License-Identifier: Apache-2.0
//
// The report page: one HTML file that holds a document, columns of events if
// there are any, and the program of web/ that shows them. This writer fills
// placeholders of a template that the build makes; it never builds script
// text. See docs/page.md for the file format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/byte_sink.h"
#include "base/status.h"
#include "base/string_pool.h"
#include "lamina/result.h"
#include "render/html/columns.h"

namespace lamina::render {

// Each distinct text of a page once; columns hold the positions.
class PageStrings {
 public:
  int64_t Id(std::string_view text);
  // Each text in the order of the ids.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (uint32_t id = 0; id < pool_.size(); ++id) visit(pool_[StringId(id)]);
  }

 private:
  StringPool pool_;
};

// A command that gives rows of the page again.
struct PageCommand {
  std::string name;                 // "report"
  std::vector<std::string> words;   // behind "lamina"
  std::vector<std::string> tables;  // that it writes
  std::vector<std::string> where;   // fields that its --where knows
};

// The names of the tables of a document.
std::vector<std::string> TableNames(const ResultSet& result);

struct Secrets;

struct Page {
  explicit Page(const Document& shown) : document(shown) {}

  const Document& document;
  PageStrings strings;
  std::vector<PageCommand> commands;
  // Raw JSON values for the manifest, by key.
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<Block> blocks;
  // Where this is given, no text enters the page but through a Redactor.
  const Secrets* redact = nullptr;
};

// False in a build without node, which has no page.
bool HasPage();

// The program of a page without a document, for a server: it fetches what it
// shows. `data`: JSON that says where from; empty: it knows. Empty in a build
// without a page.
enum class LiveProgram { kLibrary, kTrace, kMemory };
std::string LivePage(LiveProgram program, std::string_view data);

// Errors: kUsage when the build has no page.
Status WritePage(Page& page, ByteSink& sink, int threads);

// Writes a page to a file; "-" is standard output.
Status WritePageFile(Page& page, const std::string& output, int threads);

}  // namespace lamina::render
