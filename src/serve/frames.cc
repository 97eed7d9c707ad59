// SPDX-License-Identifier: Apache-2.0
#include "serve/frames.h"

#include <charconv>

namespace lamina::serve {
namespace {

template <class Number>
bool ReadNumber(std::string_view& text, char end, Number& number) {
  const auto [at, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<size_t>(at - text.data());
  if (error != std::errc() || used >= text.size() || *at != end) return false;
  text.remove_prefix(used + 1);
  return true;
}

}  // namespace

std::string FrameText(const Frame& frame) {
  return std::string(1, frame.kind) + ' ' + std::to_string(frame.id) + ' ' +
         std::to_string(frame.status) + ' ' +
         std::to_string(frame.body.size()) + '\n' + frame.body;
}

std::optional<Frame> FrameReader::Next() {
  constexpr size_t kMostHead = 64;
  if (damaged_) return std::nullopt;
  const size_t end = waiting_.find('\n');
  if (end == std::string::npos) {
    damaged_ = waiting_.size() > kMostHead;
    return std::nullopt;
  }
  Frame frame;
  uint64_t bytes = 0;
  std::string_view head(waiting_.data(), end + 1);
  damaged_ = head.size() < 2 || head.size() > kMostHead || head[1] != ' ';
  if (!damaged_) {
    frame.kind = head[0];
    head.remove_prefix(2);
    damaged_ = !ReadNumber(head, ' ', frame.id) ||
               !ReadNumber(head, ' ', frame.status) ||
               !ReadNumber(head, '\n', bytes) || bytes > kMostFrameBytes;
  }
  if (damaged_ || waiting_.size() - end - 1 < bytes) return std::nullopt;
  frame.body = waiting_.substr(end + 1, bytes);
  waiting_.erase(0, end + 1 + bytes);
  return frame;
}

}  // namespace lamina::serve
