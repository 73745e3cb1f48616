/* Counts the calls of one function, FUNCTION, and goes on into it. Compiled for one name at a time.
 *
 * Every register that may hold an argument is left as it was: the integer ones by hand, the vectors by XSAVE around the
 * one call in N that takes a snapshot. The components saved are x87, SSE, AVX and AVX-512 (bits 0-2 and 5-7), which end
 * at byte 2688 of the standard format. */
#if !defined(__x86_64__)
#error "calls of a named function are counted on x86-64 only"
#endif
#define COMPONENTS 0xe7
#define AREA 4096

    .hidden buddysim_calls
    .hidden buddysim_next_call
    .hidden buddysim_due
    .hidden buddysim_find_function

    .text
    .globl FUNCTION
    .type FUNCTION, @function
FUNCTION:
    .cfi_startproc
    endbr64
    pushq %rax                          /* al: vector registers of a variadic call */
    .cfi_adjust_cfa_offset 8
    movl $1, %eax
    lock xaddq %rax, buddysim_calls(%rip)
    incq %rax
    cmpq $0, real_function(%rip)
    je 1f
    cmpq buddysim_next_call(%rip), %rax
    jae 1f
0:  popq %rax
    .cfi_adjust_cfa_offset -8
    jmpq *real_function(%rip)
    .cfi_adjust_cfa_offset 8

1:  pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %rbx
    movq %rax, %rbx
    subq $AREA, %rsp
    andq $-64, %rsp
    xorl %eax, %eax
    leaq 512(%rsp), %rdi                /* the header must be zero */
    movl $8, %ecx
    cld
    rep stosq
    movl $COMPONENTS, %eax
    xorl %edx, %edx
    xsave64 (%rsp)
    cmpq $0, real_function(%rip)
    jne 2f
    leaq name_of_function(%rip), %rdi
    call buddysim_find_function
    movq %rax, real_function(%rip)
2:  cmpq buddysim_next_call(%rip), %rbx
    jb 3f
    movq %rbx, %rdi
    call buddysim_due
3:  movl $COMPONENTS, %eax
    xorl %edx, %edx
    xrstor64 (%rsp)
    leaq -64(%rbp), %rsp
    popq %rbx
    popq %r10
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    popq %rbp
    .cfi_def_cfa %rsp, 16
    jmp 0b
    .cfi_endproc
    .size FUNCTION, .-FUNCTION

    .section .rodata
name_of_function:
#define TEXT(name) #name
#define STRING(name) TEXT(name)
    .string STRING(FUNCTION)

    .bss
    .balign 8
real_function:
    .quad 0
    .section .note.GNU-stack,"",@progbits
