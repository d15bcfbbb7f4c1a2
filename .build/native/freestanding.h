/*
 * What a program needs that runs without a C library: its entry, and system calls. The program defines `program`, which
 * gets the stack as the kernel leaves it: the number of arguments, the arguments, a null, the environment, a null.
 */
_Noreturn void program(char **stack);

#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call program\n");

/* The result, or the error's number as a negative one. */
static long call(long number, long a, long b, long c, long d) {
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return number;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\n b program\n");

static long call(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#endif
