from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()

# Topologically Sorted Source Nodes: [embedding, pow, mean, add, rsqrt, mul, mul_1], Original ATen: [aten.add, aten.embedding, aten.mean, aten.mul, aten.pow, aten.rsqrt]
# Graph fragment:
#   %embedding : [num_users=3] = call_function[target=torch.ops.aten.embedding.default](args = (%p_embed_tokens_weight, %ids), kwargs = {})
#   %pow : [num_users=1] = call_function[target=torch.ops.aten.pow.Tensor_Scalar](args = (%embedding, 2), kwargs = {})
#   %mean : [num_users=1] = call_function[target=torch.ops.aten.mean.dim](args = (%pow, [-1], True), kwargs = {})
#   %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mean, 1e-05), kwargs = {})
#   %rsqrt : [num_users=1] = call_function[target=torch.ops.aten.rsqrt.default](args = (%add), kwargs = {})
#   %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%embedding, %rsqrt), kwargs = {})
#   %mul_1 : [num_users=2] = call_function[target=torch.ops.aten.mul.Tensor](args = (%p_layers_0_input_layernorm_weight, %mul), kwargs = {})
triton_poi_fused_embedding_0 = async_compile.triton('triton_poi_fused_embedding_0', '''
@triton.jit
''', device_str='cuda')

# Topologically Sorted Source Nodes: [silu, mul_2], Original ATen: [aten.mul, aten.silu]
# Graph fragment:
#   %silu : [num_users=1] = call_function[target=torch.ops.aten.silu.default](args = (%linear), kwargs = {})
#   %mul_2 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%silu, %linear_1), kwargs = {})
triton_poi_fused_silu_1 = async_compile.triton('triton_poi_fused_silu_1', '''
@triton.jit
''', device_str='cuda')

# Topologically Sorted Source Nodes: [add_1, pow_1, mean_1, add_2, rsqrt_1, mul_3, mul_4], Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]
# Graph fragment:
#   %add_1 : [num_users=3] = call_function[target=torch.ops.aten.add.Tensor](args = (%embedding, %linear_2), kwargs = {})
#   %pow_1 : [num_users=1] = call_function[target=torch.ops.aten.pow.Tensor_Scalar](args = (%add_1, 2), kwargs = {})
#   %mean_1 : [num_users=1] = call_function[target=torch.ops.aten.mean.dim](args = (%pow_1, [-1], True), kwargs = {})
#   %add_2 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mean_1, 1e-05), kwargs = {})
#   %rsqrt_1 : [num_users=1] = call_function[target=torch.ops.aten.rsqrt.default](args = (%add_2), kwargs = {})
#   %mul_3 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add_1, %rsqrt_1), kwargs = {})
#   %mul_4 : [num_users=2] = call_function[target=torch.ops.aten.mul.Tensor](args = (%p_layers_1_input_layernorm_weight, %mul_3), kwargs = {})
triton_poi_fused_add_2 = async_compile.triton('triton_poi_fused_add_2', '''
@triton.jit
''', device_str='cuda')

# Topologically Sorted Source Nodes: [silu_1, mul_5], Original ATen: [aten.mul, aten.silu]
# Graph fragment:
#   %silu_1 : [num_users=1] = call_function[target=torch.ops.aten.silu.default](args = (%linear_3), kwargs = {})
#   %mul_5 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%silu_1, %linear_4), kwargs = {})
triton_poi_fused_silu_3 = async_compile.triton('triton_poi_fused_silu_3', '''
@triton.jit
''', device_str='cuda')

# Topologically Sorted Source Nodes: [add_3, pow_2, mean_2, add_4, rsqrt_2, mul_6, mul_7], Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]
# Graph fragment:
#   %add_3 : [num_users=3] = call_function[target=torch.ops.aten.add.Tensor](args = (%add_1, %linear_5), kwargs = {})
#   %pow_2 : [num_users=1] = call_function[target=torch.ops.aten.pow.Tensor_Scalar](args = (%add_3, 2), kwargs = {})
#   %mean_2 : [num_users=1] = call_function[target=torch.ops.aten.mean.dim](args = (%pow_2, [-1], True), kwargs = {})
#   %add_4 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mean_2, 1e-05), kwargs = {})
#   %rsqrt_2 : [num_users=1] = call_function[target=torch.ops.aten.rsqrt.default](args = (%add_4), kwargs = {})
#   %mul_6 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add_3, %rsqrt_2), kwargs = {})
#   %mul_7 : [num_users=2] = call_function[target=torch.ops.aten.mul.Tensor](args = (%p_layers_2_input_layernorm_weight, %mul_6), kwargs = {})
triton_poi_fused_add_4 = async_compile.triton('triton_poi_fused_add_4', '''
@triton.jit
''', device_str='cuda')

# Topologically Sorted Source Nodes: [silu_2, clamp, mul_8], Original ATen: [aten.clamp, aten.mul, aten.silu]
# Graph fragment:
#   %silu_2 : [num_users=1] = call_function[target=torch.ops.aten.silu.default](args = (%linear_6), kwargs = {})
#   %clamp : [num_users=1] = call_function[target=torch.ops.aten.clamp.default](args = (%silu_2, -7.0, 7.0), kwargs = {})
#   %mul_8 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%clamp, %linear_7), kwargs = {})
triton_poi_fused_silu_5 = async_compile.triton('triton_poi_fused_silu_5', '''
@triton.jit
''', device_str='cuda')

# Topologically Sorted Source Nodes: [add_5, pow_3, mean_3, add_6, rsqrt_3, mul_9, mul_10], Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]
# Graph fragment:
#   %add_5 : [num_users=3] = call_function[target=torch.ops.aten.add.Tensor](args = (%add_3, %linear_8), kwargs = {})
#   %pow_3 : [num_users=1] = call_function[target=torch.ops.aten.pow.Tensor_Scalar](args = (%add_5, 2), kwargs = {})
#   %mean_3 : [num_users=1] = call_function[target=torch.ops.aten.mean.dim](args = (%pow_3, [-1], True), kwargs = {})
#   %add_6 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mean_3, 1e-05), kwargs = {})
#   %rsqrt_3 : [num_users=1] = call_function[target=torch.ops.aten.rsqrt.default](args = (%add_6), kwargs = {})
#   %mul_9 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add_5, %rsqrt_3), kwargs = {})
#   %mul_10 : [num_users=2] = call_function[target=torch.ops.aten.mul.Tensor](args = (%p_layers_3_input_layernorm_weight, %mul_9), kwargs = {})
triton_poi_fused_add_6 = async_compile.triton('triton_poi_fused_add_6', '''
@triton.jit
''', device_str='cuda')

# Topologically Sorted Source Nodes: [silu_3, mul_11], Original ATen: [aten.mul, aten.silu]
# Graph fragment:
#   %silu_3 : [num_users=1] = call_function[target=torch.ops.aten.silu.default](args = (%linear_9), kwargs = {})
#   %mul_11 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%silu_3, %linear_10), kwargs = {})
triton_poi_fused_silu_7 = async_compile.triton('triton_poi_fused_silu_7', '''
@triton.jit
''', device_str='cuda')

# Topologically Sorted Source Nodes: [add_7, pow_4, mean_4, add_8, rsqrt_4, mul_12, mul_13], Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]
# Graph fragment:
#   %add_7 : [num_users=2] = call_function[target=torch.ops.aten.add.Tensor](args = (%add_5, %linear_11), kwargs = {})
#   %pow_4 : [num_users=1] = call_function[target=torch.ops.aten.pow.Tensor_Scalar](args = (%add_7, 2), kwargs = {})
#   %mean_4 : [num_users=1] = call_function[target=torch.ops.aten.mean.dim](args = (%pow_4, [-1], True), kwargs = {})
#   %add_8 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mean_4, 1e-05), kwargs = {})
#   %rsqrt_4 : [num_users=1] = call_function[target=torch.ops.aten.rsqrt.default](args = (%add_8), kwargs = {})
#   %mul_12 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add_7, %rsqrt_4), kwargs = {})
#   %mul_13 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%p_norm_weight, %mul_12), kwargs = {})
triton_poi_fused_add_8 = async_compile.triton('triton_poi_fused_add_8', '''
@triton.jit
''', device_str='cuda')

def call(args):
    # Topologically Sorted Source Nodes: [embedding, pow, mean, add, rsqrt, mul, mul_1], Original ATen: [aten.add, aten.embedding, aten.mean, aten.mul, aten.pow, aten.rsqrt]
    triton_poi_fused_embedding_0.run(buf0, 512)
    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.linear]
    extern_kernels.mm(buf1, out=buf1)
    # Topologically Sorted Source Nodes: [linear_1], Original ATen: [aten.linear]
    extern_kernels.mm(buf1, out=buf1)
    # Topologically Sorted Source Nodes: [silu, mul_2], Original ATen: [aten.mul, aten.silu]
    triton_poi_fused_silu_1.run(buf1, 512)
    # Topologically Sorted Source Nodes: [linear_2], Original ATen: [aten.linear]
    extern_kernels.mm(buf2, out=buf2)
    # Topologically Sorted Source Nodes: [add_1, pow_1, mean_1, add_2, rsqrt_1, mul_3, mul_4], Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]
    triton_poi_fused_add_2.run(buf2, 512)
    # Topologically Sorted Source Nodes: [linear_3], Original ATen: [aten.linear]
    extern_kernels.mm(buf3, out=buf3)
    # Topologically Sorted Source Nodes: [linear_4], Original ATen: [aten.linear]
    extern_kernels.mm(buf3, out=buf3)
    # Topologically Sorted Source Nodes: [silu_1, mul_5], Original ATen: [aten.mul, aten.silu]
    triton_poi_fused_silu_3.run(buf3, 512)
    # Topologically Sorted Source Nodes: [linear_5], Original ATen: [aten.linear]
    extern_kernels.mm(buf4, out=buf4)
    # Topologically Sorted Source Nodes: [add_3, pow_2, mean_2, add_4, rsqrt_2, mul_6, mul_7], Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]
    triton_poi_fused_add_4.run(buf4, 512)
    # Topologically Sorted Source Nodes: [linear_6], Original ATen: [aten.linear]
    extern_kernels.mm(buf5, out=buf5)
    # Topologically Sorted Source Nodes: [linear_7], Original ATen: [aten.linear]
    extern_kernels.mm(buf5, out=buf5)
    # Topologically Sorted Source Nodes: [silu_2, clamp, mul_8], Original ATen: [aten.clamp, aten.mul, aten.silu]
    triton_poi_fused_silu_5.run(buf5, 512)
    # Topologically Sorted Source Nodes: [linear_8], Original ATen: [aten.linear]
    extern_kernels.mm(buf6, out=buf6)
    # Topologically Sorted Source Nodes: [add_5, pow_3, mean_3, add_6, rsqrt_3, mul_9, mul_10], Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]
    triton_poi_fused_add_6.run(buf6, 512)
    # Topologically Sorted Source Nodes: [linear_9], Original ATen: [aten.linear]
    extern_kernels.mm(buf7, out=buf7)
    # Topologically Sorted Source Nodes: [linear_10], Original ATen: [aten.linear]
    extern_kernels.mm(buf7, out=buf7)
    # Topologically Sorted Source Nodes: [silu_3, mul_11], Original ATen: [aten.mul, aten.silu]
    triton_poi_fused_silu_7.run(buf7, 512)
    # Topologically Sorted Source Nodes: [linear_11], Original ATen: [aten.linear]
    extern_kernels.mm(buf8, out=buf8)
    # Topologically Sorted Source Nodes: [add_7, pow_4, mean_4, add_8, rsqrt_4, mul_12, mul_13], Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]
    triton_poi_fused_add_8.run(buf8, 512)
    # Topologically Sorted Source Nodes: [linear_12], Original ATen: [aten.linear]
    extern_kernels.mm(buf9, out=buf9)
    return (buf0,)
