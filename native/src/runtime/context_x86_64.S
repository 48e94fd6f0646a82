// Where a fresh context begins on x86-64. In: rbp the entry, rdi what the first switch passed,
// rsp the aligned top of the stack. An unwinder ends here: the return address is undefined, and rbp
// is 0 for those that follow frame pointers.
//
// The missing GNU property note is on purpose: it tells the loader that what is linked from this
// cannot run under a shadow stack.
  .text
  .globl atl_rt_context_start
  .hidden atl_rt_context_start
  .type atl_rt_context_start, @function
  .p2align 4
atl_rt_context_start:
  .cfi_startproc
  .cfi_def_cfa_offset 0
  .cfi_undefined rip
#if defined(__CET__) && (__CET__ & 1)
  endbr64
#endif
  movq %rbp, %rax
  xorl %ebp, %ebp
  callq *%rax
  ud2  // an entry never returns
  .cfi_endproc
  .size atl_rt_context_start, . - atl_rt_context_start

  .section .note.GNU-stack, "", @progbits
