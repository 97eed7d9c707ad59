// SPDX-License-Identifier: Apache-2.0
#include "base/cpp_name.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(ShortCppName, DropsNamespacesParametersAndReturnType) {
  EXPECT_EQ(ShortCppName("void at::native::(anonymous namespace)::cunn_SoftMax"
                         "Forward<8, c10::BFloat16, float>(c10::BFloat16*, "
                         "c10::BFloat16 const*, int)"),
            "cunn_SoftMaxForward<8, BFloat16, float>");
  EXPECT_EQ(ShortCppName("void cutlass::Kernel2<cutlass_80_tensorop>("
                         "cutlass_80_tensorop::Params)"),
            "Kernel2<cutlass_80_tensorop>");
  EXPECT_EQ(
      ShortCppName("void at::native::vectorized_elementwise_kernel<4, "
                   "at::native::CUDAFunctor_add<c10::BFloat16>, "
                   "std::array<char*, 3ul> >(int, std::array<char*, 3ul>)"),
      "vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>, "
      "array<char*, 3ul>>");
  EXPECT_EQ(ShortCppName("void (anonymous namespace)::store_kvcache<2048l, "
                         "false>((anonymous namespace)::StoreKVCacheParams)"),
            "store_kvcache<2048l, false>");
}

TEST(ShortCppName, NamesTheFunctionAroundALambda) {
  EXPECT_EQ(
      ShortCppName(
          "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_"
          "impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIterator"
          "Base&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()"
          "() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&)::"
          "{lambda(int)#1}>(int, at::native::x)"),
      "elementwise_kernel<128, 4, gpu_kernel_impl_nocast<direct_copy_kernel_"
      "cuda>>");
  EXPECT_EQ(ShortCppName("void a::sum_functor<c10::BFloat16>::operator()(at::"
                         "TensorIterator&)::{lambda(float, float)#1}(int)"),
            "sum_functor<BFloat16>");
}

TEST(ShortCppName, DemanglesFirst) {
  EXPECT_EQ(
      ShortCppName("_ZN5aiter24add_rmsnorm_quant_kernelIfLi64ELb1EEEvPT_"),
      "add_rmsnorm_quant_kernel<float, 64, true>");
}

// What is no C++ name, or is broken, keeps all that it says.
TEST(ShortCppName, LeavesOtherText) {
  for (const char* text :
       {"", "Memcpy DtoH (Device -> Pageable)", "attn_fwd",
        "torch/nn/modules/module.py(1501): _call_impl", "_ZN", "_ZN9x",
        "_ZN99999999999999999999999999x", "nn.Module: Linear_0", "a < b",
        "aten::mul", "autograd::engine::evaluate_function: MmBackward0",
        "x::y"}) {
    EXPECT_EQ(ShortCppName(text), text);
  }
  EXPECT_EQ(ShortCppName("a::b<c::d"), "b<d");
  EXPECT_EQ(ShortCppName("a::f(((("), "f");
  EXPECT_EQ(ShortCppName("x::operator<"), "x");
  EXPECT_EQ(ShortCppName("a::b(int)::{lambda()#1}"), "b");
}

TEST(ShortCppName, EndsOnDeepNesting) {
  std::string deep = "a::";
  for (int i = 0; i < 100'000; ++i) deep += "b<";
  EXPECT_FALSE(ShortCppName(deep).empty());
}

TEST(QualifiedCppName, EndsInFrontOfArguments) {
  EXPECT_EQ(QualifiedCppName("void at::native::elementwise_kernel<128>(int)"),
            "at::native::elementwise_kernel");
  EXPECT_EQ(QualifiedCppName("void x::(anonymous namespace)::f<(int)1>(int)"),
            "x::(anonymous namespace)::f");
  EXPECT_EQ(QualifiedCppName("(anonymous namespace)::f(int)"),
            "(anonymous namespace)::f");
  EXPECT_EQ(QualifiedCppName("Cijk_Ailk_Bljk"), "Cijk_Ailk_Bljk");
  EXPECT_EQ(QualifiedCppName("<unknown>"), "<unknown>");
  EXPECT_EQ(QualifiedCppName(""), "");
}

}  // namespace
}  // namespace lamina
