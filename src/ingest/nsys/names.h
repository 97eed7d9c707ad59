// SPDX-License-Identifier: Apache-2.0
//
// Names as Nsight Systems writes them, taken apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace lamina::ingest::nsys {

// "cudaLaunchKernel_ptsz_v7000" -> "cudaLaunchKernel".
std::string_view PlainApiName(std::string_view name);
// "cu" and a capital letter.
bool IsDriverCall(std::string_view name);

// The text of an op under torch.autograd.profiler.emit_nvtx:
// "aten::mm, seq = 12, op_id = 317177, sizes = [[2, 3], [3, 4]]".
struct OpText {
  std::string_view name;
  int64_t sequence = trace::kNoInt;
  int64_t op_id = trace::kNoInt;
  std::string_view sizes;  // "[[2, 3], [3, 4]]"; empty: not recorded
};
// False when the text is no op.
bool ParseOpText(std::string_view text, OpText& op);

// "HtoD" of an entry of ENUM_CUDA_MEMCPY_OPER ("CUDA_MEMCPY_KIND_HTOD"); the
// entry itself when it is not known.
std::string CopyDirection(std::string_view entry);

}  // namespace lamina::ingest::nsys
