# SPDX-FileCopyrightText: Copyright (c) 2026 the authors of lamina
# SPDX-License-Identifier: Apache-2.0
"""A transform that is there already."""

from typing import Tuple

from torch.fx import GraphModule

from ...models.factory import ModelFactory
from ...shim.interface import CachedSequenceInterface
from ...utils.node_utils import is_op
from ..interface import BaseTransform, SharedConfig, TransformInfo, TransformRegistry


@TransformRegistry.register("drop_nothing")
class DropNothing(BaseTransform):
    def _apply(
        self,
        gm: GraphModule,
        cm: CachedSequenceInterface,
        factory: ModelFactory,
        shared_config: SharedConfig,
    ) -> Tuple[GraphModule, TransformInfo]:
        found = sum(is_op(node, ()) for node in gm.graph.nodes)
        info = TransformInfo(skipped=False, num_matches=found, is_clean=True, has_valid_shapes=True)
        return gm, info
