/* Which vector instructions code may use: those of this processor, and none where the environment asks for plain code.
 * Results are equal. BUDDYSIM_SIMD=plain is for tests, and for whoever doubts a result. */
#ifndef BUDDYSIM_PROCESSOR_H
#define BUDDYSIM_PROCESSOR_H

#include <stdlib.h>
#include <string.h>

static inline int vectors_are_allowed(void)
{
    const char *requested = getenv("BUDDYSIM_SIMD");
    return requested == NULL || strcmp(requested, "plain") != 0;
}

#define processor_has(feature) (vectors_are_allowed() && __builtin_cpu_supports(feature))

#endif
