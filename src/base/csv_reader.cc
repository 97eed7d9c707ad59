// SPDX-License-Identifier: Apache-2.0
#include "base/csv_reader.h"

namespace lamina {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr int kEnd = -1;

}  // namespace

CsvReader::CsvReader(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(kBufferBytes) {}

bool CsvReader::Fill() {
  auto got = source_->Read(buffer_.data(), buffer_.size());
  if (!got) {
    error_ = std::move(got).error();
    return false;
  }
  pos_ = 0;
  end_ = *got;
  return end_ > 0;
}

int CsvReader::Peek() {
  if (pos_ == end_ && !Fill()) return kEnd;
  return static_cast<unsigned char>(buffer_[pos_]);
}

int CsvReader::Get() {
  const int c = Peek();
  if (c != kEnd) {
    ++pos_;
    ++offset_;
  }
  return c;
}

Result<bool> CsvReader::Next() {
  while (true) {
    // Empty lines.
    int c = Peek();
    while (c == '\n' || c == '\r') {
      Get();
      c = Peek();
    }
    if (c == kEnd) {
      if (error_) return Fail(*error_);
      return false;
    }
    row_offset_ = offset_;
    count_ = 0;
    size_t size = 0;
    bool more = true;
    while (more) {
      if (count_ == kMaxFields) {
        damaged_ = true;
        --count_;
      }
      if (count_ == fields_.size()) fields_.emplace_back();
      std::string& field = fields_[count_++];
      field.clear();
      const auto add = [&](int byte) {
        if (++size <= kMaxRowBytes) {
          field += static_cast<char>(byte);
        } else {
          damaged_ = true;
        }
      };
      if (Peek() == '"') {
        Get();
        while (true) {
          const int byte = Get();
          if (byte == kEnd) {
            damaged_ = true;
            break;
          }
          if (byte != '"') {
            add(byte);
          } else if (Peek() == '"') {
            add(Get());
          } else {
            break;
          }
        }
      }
      // The rest of the field; all of it when it has no quotes.
      while (true) {
        const int byte = Get();
        if (byte == ',') break;
        if (byte == '\n' || byte == kEnd) {
          more = false;
          break;
        }
        if (byte != '\r') add(byte);
      }
    }
    if (error_) return Fail(*error_);
    return true;
  }
}

}  // namespace lamina
