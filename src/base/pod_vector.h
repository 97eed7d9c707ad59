// SPDX-License-Identifier: Apache-2.0
//
// A growable array of trivially copyable values for trace columns.
//
// std::vector doubles by allocating, copying and freeing: while it grows, a
// column needs three times its size, and a GB of columns is copied again and
// again. realloc() of a large block moves pages instead of bytes (mremap on
// Linux), so the peak stays near the final size.
//
// It can stand on memory of others instead (Borrow): a part of a mapped file,
// whose pages become this process's own when they are written. What makes it
// grow copies it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace lamina {

template <class T>
class PodVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  PodVector() = default;
  PodVector(PodVector&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        borrowed_(std::exchange(other.borrowed_, false)) {}
  PodVector& operator=(PodVector&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(borrowed_, other.borrowed_);
    return *this;
  }
  PodVector(const PodVector&) = delete;
  PodVector& operator=(const PodVector&) = delete;
  ~PodVector() { Free(); }

  // Values that stand elsewhere, in memory that may be written and outlives
  // this.
  static PodVector Borrow(T* data, size_t count) {
    PodVector column;
    column.data_ = data;
    column.size_ = column.capacity_ = count;
    column.borrowed_ = true;
    return column;
  }
  bool borrowed() const { return borrowed_; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::span<const T> span() const { return {data_, size_}; }
  std::span<T> span() { return {data_, size_}; }

  void push_back(T value) {
    if (size_ == capacity_) [[unlikely]]
      Grow(size_ + 1);
    data_[size_++] = value;
  }
  void pop_back() { --size_; }

  void append(const T* values, size_t count) {
    if (count == 0) return;
    T* to = AppendUninitialized(count);
    std::memcpy(static_cast<void*>(to), values, count * sizeof(T));
  }

  // Room for `count` more values; the caller must write all of them.
  T* AppendUninitialized(size_t count) {
    if (size_ + count > capacity_) Grow(size_ + count);
    T* to = data_ + size_;
    size_ += count;
    return to;
  }

  void resize(size_t size, T value = T{}) {
    if (size > capacity_) Reallocate(size);
    for (size_t i = size_; i < size; ++i) data_[i] = value;
    size_ = size;
  }
  void reserve(size_t capacity) {
    if (capacity > capacity_) Reallocate(capacity);
  }
  void clear() { size_ = 0; }
  void shrink_to_fit() {
    if (size_ < capacity_) Reallocate(size_);
  }
  // Frees the memory.
  void Reset() {
    Free();
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  size_t capacity_bytes() const { return capacity_ * sizeof(T); }

 private:
  void Grow(size_t needed) {
    // Doubling while small; 1/4 when large, since moving pages is cheap and
    // the spare room counts as memory once touched.
    const size_t step =
        capacity_ < (size_t{1} << 16) ? capacity_ : capacity_ / 4;
    size_t capacity = capacity_ + step;
    if (capacity < 16) capacity = 16;
    if (capacity < needed) capacity = needed;
    Reallocate(capacity);
  }
  void Reallocate(size_t capacity) {
    if (capacity == 0) {
      Free();
      data_ = nullptr;
    } else {
      void* data = std::realloc(borrowed_ ? nullptr : static_cast<void*>(data_),
                                capacity * sizeof(T));
      if (data == nullptr) throw std::bad_alloc();
      if (borrowed_) std::memcpy(data, data_, size_ * sizeof(T));
      data_ = static_cast<T*>(data);
    }
    borrowed_ = false;
    capacity_ = capacity;
  }
  void Free() {
    if (!borrowed_) std::free(data_);
    borrowed_ = false;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool borrowed_ = false;
};

}  // namespace lamina
