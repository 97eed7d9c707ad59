# SPDX-License-Identifier: Apache-2.0
"""All modules of this folder register ops."""
import importlib
import pkgutil

for _, module, _ in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{module}")
