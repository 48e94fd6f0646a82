// Where a new context begins on x86-64. In: rbp the entry, rdi what the first switch passed, rsp
// the aligned top of the stack. An unwinder stops here: the return address is undefined, and rbp is
// 0 for unwinders that follow frame pointers.
//
// The GNU property note is missing on purpose: so the loader knows that programs linked with this
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

// The callee-saved registers as the switch below has pushed them, with the unwind information.
.macro pop_callee_saved
  .irp register, r15, r14, r13, r12, rbx, rbp
  popq %\register
  .cfi_adjust_cfa_offset -8
  .cfi_restore \register
  .endr
.endm

// void atl_rt_switch_and_return(Context* from, Context* to, void* passed)
// As switch_context, and the way back is out of here; context.hpp says what is passed. The control
// bits of `from` are saved already.
//
// Why not by `ret` alone: the CPU predicts it from a stack of its own, where the fiber that was
// left has put the newest address. Where ours is another one, a jump, which is predicted from where
// it went before, spares a misprediction; where it is the same, `ret` does, and keeps the CPU's
// stack in step. From one that stopped here straight to another that did, so that little lies
// between what the prediction goes by and the jump.
  .globl atl_rt_switch_and_return
  .hidden atl_rt_switch_and_return
  .type atl_rt_switch_and_return, @function
  .p2align 5
atl_rt_switch_and_return:
  .cfi_startproc
#if defined(__CET__) && (__CET__ & 1)
  endbr64
#endif
  .irp register, rbp, rbx, r12, r13, r14, r15
  pushq %\register
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset \register, 0
  .endr
  movl 24(%rdi), %eax
  movzwl 28(%rdi), %ecx
  xorl 24(%rsi), %eax
  xorw 28(%rsi), %cx
  andl $0xffffffc0, %eax  // as in switch_context
  orl %ecx, %eax
  jnz 1f
0:
  leaq 2f(%rip), %rax
  movq %rsp, (%rdi)
  movq %rax, 8(%rdi)
  movq %rbp, 16(%rdi)
  cmpq %rax, 8(%rsi)
  jne 3f
  movq 48(%rsp), %rcx
  movq (%rsi), %rsp
  movb $0, -1(%rdx)
  cmpq 48(%rsp), %rcx  // no pop changes the flags
  .cfi_remember_state
  pop_callee_saved
  je 4f
  popq %rcx
  .cfi_adjust_cfa_offset -8
  .cfi_register rip, rcx
  jmpq *%rcx
4:
  .cfi_adjust_cfa_offset 8
  .cfi_restore rip
  ret
  .cfi_restore_state
1:
  ldmxcsr 24(%rsi)
  fldcw 28(%rsi)
  jmp 0b
3:  // it stopped in switch_context, or is a fresh one
  movq %rdx, %rdi
  movq 8(%rsi), %rcx
  movq 16(%rsi), %rbp
  movq (%rsi), %rsp
  jmpq *%rcx
2:  // back from switch_context
#if defined(__CET__) && (__CET__ & 1)
  endbr64
#endif
  testq %rdi, %rdi
  jz 5f
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call atl_rt_arrived
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
5:
  pop_callee_saved
  ret
  .cfi_endproc
  .size atl_rt_switch_and_return, . - atl_rt_switch_and_return

// How functions of ATL_RT_RETURNS_BY_JUMP return: the compiler chose the name. It takes rcx, which
// the compiler does not know of. The switch in each of these functions changes rcx, too, and that
// the compiler knows, so that no caller keeps anything there, even where it sees both.
  .weak __x86_return_thunk
  .hidden __x86_return_thunk
  .type __x86_return_thunk, @function
  .p2align 5
__x86_return_thunk:
  .cfi_startproc
  popq %rcx
  .cfi_adjust_cfa_offset -8
  .cfi_register rip, rcx
  jmpq *%rcx
  .cfi_endproc
  .size __x86_return_thunk, . - __x86_return_thunk

  .section .note.GNU-stack, "", @progbits
