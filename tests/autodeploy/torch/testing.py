# SPDX-License-Identifier: Apache-2.0
def assert_close(a, b):
    raise NotImplementedError("tensors without data")
