// SPDX-License-Identifier: Apache-2.0

#include "base/json/tokens.h"

#include <algorithm>
#include <simdjson.h>

#include "base/json/scan.h"

namespace lamina::json {

static_assert(kPadding >= simdjson::SIMDJSON_PADDING);

struct TokenIndex::Impl {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
  size_t capacity = 0;
};

TokenIndex::TokenIndex() : impl_(std::make_unique<Impl>()) {}
TokenIndex::~TokenIndex() = default;
TokenIndex::TokenIndex(TokenIndex&&) noexcept = default;
TokenIndex& TokenIndex::operator=(TokenIndex&&) noexcept = default;

TokenIndex::Outcome TokenIndex::Build(std::string_view text) {
  if (text.size() > impl_->capacity || impl_->parser == nullptr) {
    const size_t capacity = std::max<size_t>(text.size(), size_t{64} << 10);
    simdjson::error_code error = simdjson::SUCCESS;
    if (impl_->parser == nullptr) {
      error =
          simdjson::get_active_implementation()
              ->create_dom_parser_implementation(capacity, 4, impl_->parser);
    } else {
      error = impl_->parser->set_capacity(capacity);
    }
    if (error != simdjson::SUCCESS) return Outcome::kBroken;
    impl_->capacity = capacity;
  }
  const simdjson::error_code error =
      impl_->parser->stage1(reinterpret_cast<const uint8_t*>(text.data()),
                            text.size(), simdjson::stage1_mode::regular);
  return error == simdjson::SUCCESS ? Outcome::kOk : Outcome::kBroken;
}

const uint32_t* TokenIndex::data() const {
  return impl_->parser->structural_indexes.get();
}

size_t TokenIndex::size() const { return impl_->parser->n_structural_indexes; }

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
