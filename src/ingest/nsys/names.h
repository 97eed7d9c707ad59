// SPDX-License-Identifier: Apache-2.0
//
// Names as Nsight Systems writes them, taken apart.
#pragma once

#include <string>
#include <string_view>

namespace lamina::ingest::nsys {

// "cudaLaunchKernel_ptsz_v7000" -> "cudaLaunchKernel".
std::string_view PlainApiName(std::string_view name);
// "cu" and a capital letter.
bool IsDriverCall(std::string_view name);

// "HtoD" of an entry of ENUM_CUDA_MEMCPY_OPER ("CUDA_MEMCPY_KIND_HTOD"); the
// entry itself when it is not known.
std::string CopyDirection(std::string_view entry);

}  // namespace lamina::ingest::nsys
