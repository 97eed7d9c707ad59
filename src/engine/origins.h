// SPDX-License-Identifier: Apache-2.0
//
// What opened traces say of where they were made, for a page that must not
// show it: names of hosts and users, and a key for the tokens that stand for
// them. The key is made of everything in a trace, of which a page holds a part:
// nobody without the trace can try names until a token fits.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "render/redact/redactor.h"
#include "trace/trace.h"

namespace lamina::engine {

class Origins {
 public:
  // Patterns of secrets for those of the program; before the first Add().
  void Use(std::shared_ptr<const rules::SecretTable> patterns) {
    patterns_ = std::move(patterns);
  }
  // From any thread.
  void Add(const std::string& path, const trace::Trace& trace);

  // For a page of these inputs: the key is that of the first one that was
  // opened here, so that all pages of a trace have the same tokens. Without
  // any the key comes from the texts of the page.
  render::Secrets SecretsOf(const std::vector<std::string>& inputs) const;

 private:
  std::shared_ptr<const rules::SecretTable> patterns_;
  mutable std::mutex mutex_;
  std::map<std::string, render::Secrets> origins_;  // by path
};

}  // namespace lamina::engine
