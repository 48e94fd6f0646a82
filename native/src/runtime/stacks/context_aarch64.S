// Where a new context begins on aarch64. In: x29 the entry, x0 what the first switch passed, sp the
// aligned top of the stack. An unwinder stops here: the return address is undefined, and x29 is 0
// for unwinders that follow frame pointers.
  .text
  .globl atl_rt_context_start
  .hidden atl_rt_context_start
  .type atl_rt_context_start, %function
  .p2align 4
atl_rt_context_start:
  .cfi_startproc
  .cfi_undefined x30
  hint #36  // bti j: an indirect jump lands here
  mov x9, x29
  mov x29, #0
  blr x9
  brk #1  // an entry never returns
  .cfi_endproc
  .size atl_rt_context_start, . - atl_rt_context_start

  .section .note.GNU-stack, "", %progbits
