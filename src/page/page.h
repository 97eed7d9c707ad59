// SPDX-License-Identifier: Apache-2.0
//
// The page of a report: its document with the tables of layers, and beside it
// the events themselves in columns, so that every number on the page leads to
// the events that it was made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/layers/layers.h"
#include "engine/session.h"
#include "page/live.h"
#include "render/html/page.h"

namespace lamina::render {
struct Secrets;
}

namespace lamina::page {

// What a page was made of, for questions about events that it may not hold. The
// context is one of the session; whoever keeps this sets an owner of it, and
// the document that WritePage leaves.
struct LiveTrace {
  std::shared_ptr<const void> owner;
  const analysis::Context* context = nullptr;
  Document document;
  std::shared_ptr<LiveEvents> events;
  std::vector<std::string> groups;  // that tiles have numbers of
};

struct PageOptions {
  std::string output = "-";
  int threads = 1;
  // Detail is left out of a page that would be larger, in a fixed order.
  uint64_t max_bytes = uint64_t{25} << 20;
  const render::Secrets* redact = nullptr;  // what the page must not show
  // Above this a page holds sums, and only some device events as they are.
  size_t max_events = 2'000'000;
  tree::LinkMode link = tree::LinkMode::kAuto;
  bool python_stacks = false;
  analysis::Settings settings;
  analysis::layers::Options layers;  // how the layers of the page are found
  // The answer over the trace as a JSON object, empty: none; columns that
  // belong to it, and facts about those.
  std::string answer;
  std::vector<render::Block> answer_blocks;
  std::string answer_lanes;  // [0, 2]: of each device the first of its lanes
  // Given what a page asks that is served; null: the page is a file.
  std::function<void(LiveTrace&& live)> live;
  // Those that give rows of the page again: report; layers and slice where
  // they can. The tables and fields of each are filled in.
  std::vector<render::PageCommand> commands;
};

// Leaves the tables that conditions on events read.
void KeepEventTables(Document& document);

// `document` is what MakeReport made of this session with the native layout; it
// has the table kernels. Afterwards it is what the page shows: with the tables
// of layers and what the page notes, without those that it leaves out.
Status WritePage(engine::Session& session, Document& document,
                 const PageOptions& options);

}  // namespace lamina::page
