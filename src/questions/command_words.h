// SPDX-License-Identifier: Apache-2.0
//
// A command line in words that give the same result again: a page offers the
// command for what it shows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::questions {

struct GivenOption {
  std::string name;                 // "--device"
  std::vector<std::string> values;  // none: a flag
};
struct GivenWords {
  std::vector<std::string> command;  // "graph", "census"
  std::vector<std::string> inputs;
  std::vector<GivenOption> options;
};

class CommandWords {
 public:
  CommandWords() = default;
  // Options that only say how or where something is written, or how it is
  // computed, are left out.
  explicit CommandWords(const GivenWords& words);

  // The words behind "lamina", to give to a shell: the command, inputs and
  // options.
  std::vector<std::string> Words() const;
  // Those of another command on the same inputs that knows these options too.
  std::vector<std::string> WordsFor(
      std::string_view command,
      std::span<const std::string_view> options) const;
  bool empty() const { return command_.empty(); }
  // No second run can read what came through a pipe.
  bool ReadsStdin() const;
  // Files and folders that are read, without those of options.
  const std::vector<std::string>& inputs() const { return inputs_; }

 private:
  static void Append(const GivenOption& option,
                     std::vector<std::string>& words);

  std::vector<std::string> command_;  // "graph", "census"
  std::vector<std::string> inputs_;
  std::vector<GivenOption> options_;
};

}  // namespace lamina::questions
