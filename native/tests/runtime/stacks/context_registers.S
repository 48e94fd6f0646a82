// For context_test.cpp:
//   uint64_t atl_test_registers(void (*call)(void*), void* argument, uint64_t pattern);
// Puts pattern + i into the i-th register that a call must preserve, calls, and returns the bits in
// which any of them came back different.
#if defined(__x86_64__)
  .text
  .globl atl_test_registers
  .type atl_test_registers, @function
atl_test_registers:
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  pushq %r12
  .cfi_adjust_cfa_offset 8
  pushq %r13
  .cfi_adjust_cfa_offset 8
  pushq %r14
  .cfi_adjust_cfa_offset 8
  pushq %r15
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  leaq 1(%rdx), %rbp
  leaq 2(%rdx), %rbx
  leaq 3(%rdx), %r12
  leaq 4(%rdx), %r13
  leaq 5(%rdx), %r14
  leaq 6(%rdx), %r15
  movq %rdi, %rax
  movq %rsi, %rdi
  callq *%rax
  popq %rdx
  .cfi_adjust_cfa_offset -8
  subq %rdx, %rbp
  xorq $1, %rbp
  movq %rbp, %rax
  subq %rdx, %rbx
  xorq $2, %rbx
  orq %rbx, %rax
  subq %rdx, %r12
  xorq $3, %r12
  orq %r12, %rax
  subq %rdx, %r13
  xorq $4, %r13
  orq %r13, %rax
  subq %rdx, %r14
  xorq $5, %r14
  orq %r14, %rax
  subq %rdx, %r15
  xorq $6, %r15
  orq %r15, %rax
  popq %r15
  .cfi_adjust_cfa_offset -8
  popq %r14
  .cfi_adjust_cfa_offset -8
  popq %r13
  .cfi_adjust_cfa_offset -8
  popq %r12
  .cfi_adjust_cfa_offset -8
  popq %rbx
  .cfi_adjust_cfa_offset -8
  popq %rbp
  .cfi_adjust_cfa_offset -8
  retq
  .cfi_endproc
  .size atl_test_registers, . - atl_test_registers
  .section .note.GNU-stack, "", @progbits
#elif defined(__aarch64__)
  .text
  .globl atl_test_registers
  .type atl_test_registers, %function
atl_test_registers:
  .cfi_startproc
  stp x29, x30, [sp, #-176]!
  .cfi_adjust_cfa_offset 176
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  str x2, [sp, #160]
  .irp number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
  add x\number, x2, #\number
  .endr
  .irp number, 8, 9, 10, 11, 12, 13, 14, 15
  add x9, x2, #\number
  fmov d\number, x9
  .endr
  mov x9, x0
  mov x0, x1
  blr x9
  ldr x2, [sp, #160]
  mov x0, #0
  .irp number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
  add x9, x2, #\number
  eor x9, x9, x\number
  orr x0, x0, x9
  .endr
  .irp number, 8, 9, 10, 11, 12, 13, 14, 15
  add x9, x2, #\number
  fmov x10, d\number
  eor x9, x9, x10
  orr x0, x0, x9
  .endr
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #176
  .cfi_adjust_cfa_offset -176
  ret
  .cfi_endproc
  .size atl_test_registers, . - atl_test_registers
  .section .note.GNU-stack, "", %progbits
#endif
