# SPDX-License-Identifier: Apache-2.0
"""A decoder-only transformer as the ops, modules and kernels it runs.

Durations come from FLOPs and bytes at a part of an H100's peaks, so that
rooflines of generated traces look like something.
"""
import dataclasses

from machine import Kernel

PEAK_FLOPS = 989e12
PEAK_BYTES = 3.35e12
ELEMENTWISE = ("void at::native::vectorized_elementwise_kernel<4, {}, "
               "std::array<char*, {}ul> >(int, {}, std::array<char*, {}ul>)")
NAMES = {
    "gemm": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_{}_n_tilesize{}_warpgroupsize"
            "1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "norm": "void at::native::(anonymous namespace)::vectorized_layer_norm_"
            "kernel<c10::BFloat16, float, true>(int, float, c10::BFloat16 "
            "const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, "
            "float*, c10::BFloat16*)",
    "norm_bwd": "void at::native::(anonymous namespace)::layer_norm_grad_input"
                "_kernel_vectorized<c10::BFloat16, float, true>"
                "(c10::BFloat16 const*)",
    "flash": "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, "
             "false, false, cutlass::bfloat16_t> >(Flash_fwd_params)",
    "flash_bwd": "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_"
                 "kernel_traits<128, 64, 128, 8> >(Flash_bwd_params)",
    "paged": "void paged_attention_v2_kernel<__nv_bfloat16, __nv_bfloat16, "
             "128, 16, 128>(float*, float*, __nv_bfloat16*)",
    "rope": "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long "
            "const*, c10::BFloat16*, c10::BFloat16*)",
    "cache": "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, "
             "__nv_bfloat16>(__nv_bfloat16 const*)",
    "silu_mul": "void vllm::act_and_mul_kernel<c10::BFloat16, silu_kernel>"
                "(c10::BFloat16*, c10::BFloat16 const*, int)",
    "rms": "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>"
           "(c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, float)",
    "topk": "void vllm::moe::topkGating<8, 64, 4, 16, 32, int, __nv_bfloat16>"
            "(__nv_bfloat16 const*)",
    "moe_align": "void vllm::moe::moe_align_block_size_kernel<int>(int*)",
    "fused_moe": "fused_moe_kernel",
    "embedding": "void at::native::(anonymous namespace)::indexSelectLargeIndex"
                 "<c10::BFloat16, long, unsigned int, 2, 2, -2, true>",
    "argmax": "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<"
              "float, at::native::ArgMaxOps<float>, unsigned int, long, 4> >",
    "softmax": "void (anonymous namespace)::cunn_SoftMaxForward<4, float, "
               "float, float>(float*, float const*, int)",
    "nll": "void at::native::nll_loss_forward_reduce_cuda_kernel_2d<float>",
    "adam": "void at::native::(anonymous namespace)::multi_tensor_apply_kernel"
            "<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor>",
    "nccl": "ncclDevKernel_{}_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}


@dataclasses.dataclass
class Model:
    layers: int = 4
    hidden: int = 2048
    heads: int = 16
    ffn: int = 5632
    vocab: int = 32000
    experts: int = 0  # 0: dense
    top_k: int = 2
    ffn_expert: int = 1408
    bytes: int = 2

    @property
    def head_dim(self):
        return self.hidden // self.heads


def roofline_ns(flops, size, efficiency=0.6):
    return int(1500 + 1e9 * max(flops / (efficiency * PEAK_FLOPS),
                                size / (0.75 * PEAK_BYTES)))


def gemm(rank, m, n, k, op="aten::mm", transposed="tn", **kwargs):
    """One matrix product of [m, k] by [k, n]."""
    tile = "128x128x64" if m > 64 else "64x64x64"
    with rank.op(op, [(m, k), (k, n)], **kwargs):
        rank.launch(Kernel(NAMES["gemm"].format(transposed, tile),
                           roofline_ns(2 * m * n * k,
                                       2 * (m * k + k * n + m * n)),
                           grid=(max(1, n // 128), max(1, m // 128), 1),
                           block=(384, 1, 1)), "cudaLaunchKernelExC")


def linear(rank, m, n, k, key):
    """nn.Linear: module, aten::linear, aten::t and the product. Returns what
    the backward pass needs: node, sequence number, work, module."""
    with rank.module("Linear", 310, key):
        sequence = rank.next("sequence")
        with rank.op("aten::linear", [(m, k), (n, k)]):
            with rank.op("aten::t", [(n, k)], host_ns=800):
                pass
            gemm(rank, m, n, k, sequence=sequence)
        return ("MmBackward0", sequence, ("linear", m, n, k), rank.path())


def simple(rank, op, dims, kernel, size, api="cudaLaunchKernel", **kwargs):
    """An op with one memory-bound kernel that moves `size` bytes."""
    with rank.op(op, dims, **kwargs):
        rank.launch(Kernel(kernel, roofline_ns(0, size),
                           grid=(max(1, size // 65536), 1, 1)), api)


def elementwise(rank, op, dims, functor, inputs=2, **kwargs):
    count = 1
    for size in dims[0]:
        count *= size
    name = ELEMENTWISE.format(functor, inputs + 1, functor, inputs + 1)
    simple(rank, op, dims, name, 2 * count * (inputs + 1), **kwargs)


ADD = "at::native::CUDAFunctor_add<c10::BFloat16>"
MUL = ("at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
       "c10::BFloat16, at::native::binary_internal::MulFunctor<float> >")
SILU = "at::native::(anonymous namespace)::silu_kernel"
