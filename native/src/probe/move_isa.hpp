// The kernels that each instruction set's file provides to move_kernels.cpp; null if it has none.
#pragma once

#include "move_kernels.hpp"

namespace atl::probe {

MoveKernel move_kernel_scalar(MoveOp op, Store store);
MoveKernel move_kernel_sse2(MoveOp op, Store store);
MoveKernel move_kernel_avx2(MoveOp op, Store store);
MoveKernel move_kernel_avx512(MoveOp op, Store store);
MoveKernel move_kernel_neon(MoveOp op, Store store);

MoveKernel move_null_scalar(MoveOp op);
MoveKernel move_null_sse2(MoveOp op);
MoveKernel move_null_avx2(MoveOp op);
MoveKernel move_null_avx512(MoveOp op);
MoveKernel move_null_neon(MoveOp op);

}  // namespace atl::probe
