// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "render/html/page.h"

namespace lamina::render {

// Writes a page to a file; "-" is standard output.
Status WritePageFile(Page& page, const std::string& output, int threads);

}  // namespace lamina::render
