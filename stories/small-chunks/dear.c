/* A libcrypto whose every call to process data costs a fixed time more, as when each makes a virtual machine exit: the
 * system's library, with a wait of DEAR_NS before EVP_CipherUpdate. Built as a program, it tells what the wait really takes. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* Ends at the first look at the clock that is late enough, so it takes a little longer than DEAR_NS. */
static void wait_a_little(void) {
    long until_ns = now_ns() + DEAR_NS;
    while (now_ns() < until_ns) {
    }
}

#ifdef MEASURE
static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

/* Prints the median over 51 rounds of the mean of 2000 waits, in ns: a round in which somebody else had the CPU is no
 * measurement of the wait. */
int main(void) {
    double rounds[51];
    for (int round = 0; round < 51; round++) {
        long start_ns = now_ns();
        for (int count = 0; count < 2000; count++) wait_a_little();
        rounds[round] = (now_ns() - start_ns) / 2000.0;
    }
    qsort(rounds, 51, sizeof rounds[0], compare);
    printf("%.0f\n", rounds[25]);
    return 0;
}
#else
int EVP_CipherUpdate(void *context, unsigned char *out, int *out_bytes, const unsigned char *in, int in_bytes) {
    typedef int (*update_function)(void *, unsigned char *, int *, const unsigned char *, int);
    static update_function update;
    if (!update) update = (update_function)dlsym(dlopen(LIBCRYPTO, RTLD_NOW | RTLD_LOCAL), "EVP_CipherUpdate");
    wait_a_little();
    return update(context, out, out_bytes, in, in_bytes);
}
#endif
