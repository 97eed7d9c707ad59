class GraphModule(torch.nn.Module):
    def forward(self, L_self_modules_embed_tokens_parameters_weight_: "bf16[100, 64]", L_self_modules_layers_modules_0_modules_input_layernorm_parameters_weight_: "bf16[64]", L_self_modules_layers_modules_0_modules_mlp_modules_gate_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_0_modules_mlp_modules_up_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_0_modules_mlp_modules_down_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_1_modules_input_layernorm_parameters_weight_: "bf16[64]", L_self_modules_layers_modules_1_modules_mlp_modules_gate_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_1_modules_mlp_modules_up_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_1_modules_mlp_modules_down_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_2_modules_input_layernorm_parameters_weight_: "bf16[64]", L_self_modules_layers_modules_2_modules_mlp_modules_gate_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_2_modules_mlp_modules_up_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_2_modules_mlp_modules_down_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_3_modules_input_layernorm_parameters_weight_: "bf16[64]", L_self_modules_layers_modules_3_modules_mlp_modules_gate_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_3_modules_mlp_modules_up_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_layers_modules_3_modules_mlp_modules_down_proj_parameters_weight_: "bf16[64, 64]", L_self_modules_norm_parameters_weight_: "bf16[64]", L_self_modules_lm_head_parameters_weight_: "bf16[64, 64]", L_ids_: "i64[8]"):
        p_embed_tokens_weight = L_self_modules_embed_tokens_parameters_weight_
        p_layers_0_input_layernorm_weight = L_self_modules_layers_modules_0_modules_input_layernorm_parameters_weight_
        p_layers_0_mlp_gate_proj_weight = L_self_modules_layers_modules_0_modules_mlp_modules_gate_proj_parameters_weight_
        p_layers_0_mlp_up_proj_weight = L_self_modules_layers_modules_0_modules_mlp_modules_up_proj_parameters_weight_
        p_layers_0_mlp_down_proj_weight = L_self_modules_layers_modules_0_modules_mlp_modules_down_proj_parameters_weight_
        p_layers_1_input_layernorm_weight = L_self_modules_layers_modules_1_modules_input_layernorm_parameters_weight_
        p_layers_1_mlp_gate_proj_weight = L_self_modules_layers_modules_1_modules_mlp_modules_gate_proj_parameters_weight_
        p_layers_1_mlp_up_proj_weight = L_self_modules_layers_modules_1_modules_mlp_modules_up_proj_parameters_weight_
        p_layers_1_mlp_down_proj_weight = L_self_modules_layers_modules_1_modules_mlp_modules_down_proj_parameters_weight_
        p_layers_2_input_layernorm_weight = L_self_modules_layers_modules_2_modules_input_layernorm_parameters_weight_
        p_layers_2_mlp_gate_proj_weight = L_self_modules_layers_modules_2_modules_mlp_modules_gate_proj_parameters_weight_
        p_layers_2_mlp_up_proj_weight = L_self_modules_layers_modules_2_modules_mlp_modules_up_proj_parameters_weight_
        p_layers_2_mlp_down_proj_weight = L_self_modules_layers_modules_2_modules_mlp_modules_down_proj_parameters_weight_
        p_layers_3_input_layernorm_weight = L_self_modules_layers_modules_3_modules_input_layernorm_parameters_weight_
        p_layers_3_mlp_gate_proj_weight = L_self_modules_layers_modules_3_modules_mlp_modules_gate_proj_parameters_weight_
        p_layers_3_mlp_up_proj_weight = L_self_modules_layers_modules_3_modules_mlp_modules_up_proj_parameters_weight_
        p_layers_3_mlp_down_proj_weight = L_self_modules_layers_modules_3_modules_mlp_modules_down_proj_parameters_weight_
        p_norm_weight = L_self_modules_norm_parameters_weight_
        p_lm_head_weight = L_self_modules_lm_head_parameters_weight_
        ids = L_ids_


         # File: model.py:10 in forward, code: h = step0(h)
        embedding: "bf16[8, 64]" = torch.ops.aten.embedding.default(p_embed_tokens_weight, ids)
        pow: "bf16[8, 64]" = torch.ops.aten.pow.Tensor_Scalar(embedding, 2)
        mean: "bf16[8, 1]" = torch.ops.aten.mean.dim(pow, [-1], True)
        add: "bf16[8, 1]" = torch.ops.aten.add.Tensor(mean, 1e-05)
        rsqrt: "bf16[8, 1]" = torch.ops.aten.rsqrt.default(add)
        mul: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(embedding, rsqrt)
        mul_1: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(p_layers_0_input_layernorm_weight, mul)

         # File: model.py:17 in forward, code: h = step7(h)
        linear: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_1, p_layers_0_mlp_gate_proj_weight)
        linear_1: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_1, p_layers_0_mlp_up_proj_weight)
        silu: "bf16[8, 64]" = torch.ops.aten.silu.default(linear)
        mul_2: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(silu, linear_1)
        linear_2: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_2, p_layers_0_mlp_down_proj_weight)
        add_1: "bf16[8, 64]" = torch.ops.aten.add.Tensor(embedding, linear_2)
        pow_1: "bf16[8, 64]" = torch.ops.aten.pow.Tensor_Scalar(add_1, 2)

         # File: model.py:24 in forward, code: h = step14(h)
        mean_1: "bf16[8, 1]" = torch.ops.aten.mean.dim(pow_1, [-1], True)
        add_2: "bf16[8, 1]" = torch.ops.aten.add.Tensor(mean_1, 1e-05)
        rsqrt_1: "bf16[8, 1]" = torch.ops.aten.rsqrt.default(add_2)
        mul_3: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(add_1, rsqrt_1)
        mul_4: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(p_layers_1_input_layernorm_weight, mul_3)
        linear_3: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_4, p_layers_1_mlp_gate_proj_weight)
        linear_4: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_4, p_layers_1_mlp_up_proj_weight)

         # File: model.py:31 in forward, code: h = step21(h)
        silu_1: "bf16[8, 64]" = torch.ops.aten.silu.default(linear_3)
        mul_5: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(silu_1, linear_4)
        linear_5: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_5, p_layers_1_mlp_down_proj_weight)
        add_3: "bf16[8, 64]" = torch.ops.aten.add.Tensor(add_1, linear_5)
        pow_2: "bf16[8, 64]" = torch.ops.aten.pow.Tensor_Scalar(add_3, 2)
        mean_2: "bf16[8, 1]" = torch.ops.aten.mean.dim(pow_2, [-1], True)
        add_4: "bf16[8, 1]" = torch.ops.aten.add.Tensor(mean_2, 1e-05)

         # File: model.py:38 in forward, code: h = step28(h)
        rsqrt_2: "bf16[8, 1]" = torch.ops.aten.rsqrt.default(add_4)
        mul_6: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(add_3, rsqrt_2)
        mul_7: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(p_layers_2_input_layernorm_weight, mul_6)
        linear_6: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_7, p_layers_2_mlp_gate_proj_weight)
        linear_7: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_7, p_layers_2_mlp_up_proj_weight)
        silu_2: "bf16[8, 64]" = torch.ops.aten.silu.default(linear_6)
        clamp: "bf16[8, 64]" = torch.ops.aten.clamp.default(silu_2, -7.0, 7.0)

         # File: model.py:45 in forward, code: h = step35(h)
        mul_8: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(clamp, linear_7)
        linear_8: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_8, p_layers_2_mlp_down_proj_weight)
        add_5: "bf16[8, 64]" = torch.ops.aten.add.Tensor(add_3, linear_8)
        pow_3: "bf16[8, 64]" = torch.ops.aten.pow.Tensor_Scalar(add_5, 2)
        mean_3: "bf16[8, 1]" = torch.ops.aten.mean.dim(pow_3, [-1], True)
        add_6: "bf16[8, 1]" = torch.ops.aten.add.Tensor(mean_3, 1e-05)
        rsqrt_3: "bf16[8, 1]" = torch.ops.aten.rsqrt.default(add_6)

         # File: model.py:52 in forward, code: h = step42(h)
        mul_9: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(add_5, rsqrt_3)
        mul_10: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(p_layers_3_input_layernorm_weight, mul_9)
        linear_9: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_10, p_layers_3_mlp_gate_proj_weight)
        linear_10: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_10, p_layers_3_mlp_up_proj_weight)
        silu_3: "bf16[8, 64]" = torch.ops.aten.silu.default(linear_9)
        mul_11: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(silu_3, linear_10)
        linear_11: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_11, p_layers_3_mlp_down_proj_weight)

         # File: model.py:59 in forward, code: h = step49(h)
        add_7: "bf16[8, 64]" = torch.ops.aten.add.Tensor(add_5, linear_11)
        pow_4: "bf16[8, 64]" = torch.ops.aten.pow.Tensor_Scalar(add_7, 2)
        mean_4: "bf16[8, 1]" = torch.ops.aten.mean.dim(pow_4, [-1], True)
        add_8: "bf16[8, 1]" = torch.ops.aten.add.Tensor(mean_4, 1e-05)
        rsqrt_4: "bf16[8, 1]" = torch.ops.aten.rsqrt.default(add_8)
        mul_12: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(add_7, rsqrt_4)
        mul_13: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(p_norm_weight, mul_12)

         # File: model.py:66 in forward, code: h = step56(h)
        linear_12: "bf16[8, 64]" = torch.ops.aten.linear.default(mul_13, p_lm_head_weight)
        return (linear_12,)
