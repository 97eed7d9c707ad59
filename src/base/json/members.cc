// SPDX-License-Identifier: Apache-2.0
#include "base/json/members.h"

#include "base/json/scan.h"

namespace lamina::json {

MemberScan::MemberScan(std::string_view text)
    : text_(text), pos_(SkipSpace(text, 0)) {
  broken_ = pos_ >= text_.size() || text_[pos_] != '{';
  ++pos_;
}

bool MemberScan::Next(Member& member) {
  if (broken_ || closed_) return false;
  broken_ = true;  // until a member is found
  const auto at = [&](char c) {
    pos_ = SkipSpace(text_, pos_);
    return pos_ < text_.size() && text_[pos_] == c;
  };
  if (at('}')) {
    closed_ = true;
    return false;
  }
  if (!first_) {
    if (!at(',')) return false;
    ++pos_;
  }
  if (!at('"')) return false;
  const ScanResult key = ScanValue(text_, pos_);
  if (key.kind != ScanResult::Kind::kOk) return false;
  member.key = text_.substr(pos_ + 1, key.end - pos_ - 2);
  pos_ = key.end;
  if (!at(':')) return false;
  member.position = SkipSpace(text_, pos_ + 1);
  const ScanResult value = ScanValue(text_, member.position);
  if (value.kind != ScanResult::Kind::kOk) return false;
  member.value = text_.substr(member.position, value.end - member.position);
  pos_ = value.end;
  first_ = false;
  broken_ = false;
  return true;
}

}  // namespace lamina::json
