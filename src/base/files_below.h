// SPDX-License-Identifier: Apache-2.0
//
// The files of a folder and of the folders below it.
#pragma once

#include <string>
#include <vector>

namespace lamina {

// Regular files, each once whatever links lead to it or around: by device and
// inode, under the name without links where it has one, else under the first
// in order of names. Folders that cannot be read are passed over. Names begin
// with `folder`; they are sorted. `most_depth`: 0 for the folder alone.
std::vector<std::string> FilesBelow(const std::string& folder,
                                    int most_depth = 64);

}  // namespace lamina
