// SPDX-License-Identifier: Apache-2.0
//
// What the server and the process that has a trace open say to each other: a
// line "KIND ID STATUS BYTES" and so many bytes. Neither trusts the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamina::serve {

struct Frame {
  // To the worker: a question, 'q' SQL, 't' tiles, 's' sums, 'f' events; 'c'
  // ends it. From it: 'p' progress, "DONE TOTAL"; 'o' opened, or not, by the
  // status; 'r' the reply to a question.
  char kind = 0;
  uint64_t id = 0;
  int status = 0;  // of HTTP
  std::string body;
};

inline constexpr size_t kMostFrameBytes = size_t{64} << 20;

std::string FrameText(const Frame& frame);

class FrameReader {
 public:
  void Feed(std::string_view bytes) { waiting_ += bytes; }
  // The next whole frame.
  std::optional<Frame> Next();
  // What came is no frame: there is no way on.
  bool damaged() const { return damaged_; }

 private:
  std::string waiting_;
  bool damaged_ = false;
};

}  // namespace lamina::serve
