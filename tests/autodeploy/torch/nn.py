# SPDX-License-Identifier: Apache-2.0
class Module:
    def __init__(self):
        self._buffers = {}

    def register_buffer(self, name, value):
        self._buffers[name] = value

    def named_buffers(self):
        return iter(self._buffers.items())
