# SPDX-License-Identifier: Apache-2.0
"""Base class, registry and configuration of transforms (older API)."""
from enum import Enum
from typing import Tuple

from torch.fx import GraphModule


class Stages(Enum):
    """In the order in which they run."""

    FACTORY = "factory"
    EXPORT = "export"
    POST_EXPORT = "post_export"
    PATTERN_MATCHER = "pattern_matcher"
    SHARDING = "sharding"
    WEIGHT_LOAD = "weight_load"
    POST_LOAD_FUSION = "post_load_fusion"
    VISUALIZE = "visualize"
    CACHE_INIT = "cache_init"
    COMPILE = "compile"


class _Fields:
    """What pydantic does for the real classes: fields with defaults."""

    def __init__(self, **values):
        for cls in reversed(type(self).__mro__):
            for name in getattr(cls, "__annotations__", {}):
                if hasattr(cls, name):
                    setattr(self, name, getattr(cls, name))
        for name, value in values.items():
            setattr(self, name, value)


class SharedConfig(_Fields):
    local_rank: int = 0
    world_size: int = 1


class TransformConfig(_Fields):
    stage: Stages
    enabled: bool = True
    skip_on_error: bool = False
    run_graph_cleanup: bool = True
    run_shape_prop: bool = False
    requires_clean_graph: bool = True
    requires_shape_prop: bool = False


class TransformInfo(_Fields):
    skipped: bool
    num_matches: int
    is_clean: bool = False
    has_valid_shapes: bool = False


class BaseTransform:
    @classmethod
    def get_config_class(cls):
        return TransformConfig

    def __init__(self, config):
        self.config = config

    def _apply(
        self,
        gm: GraphModule,
        cm: "CachedSequenceInterface",
        factory: "ModelFactory",
        shared_config: SharedConfig,
    ) -> Tuple[GraphModule, TransformInfo]:
        raise NotImplementedError


class TransformRegistry:
    _registry = {}

    @classmethod
    def register(cls, name):
        def inner(transform):
            cls._registry[name] = transform
            return transform

        return inner

    @classmethod
    def get(cls, name):
        return cls._registry[name]
