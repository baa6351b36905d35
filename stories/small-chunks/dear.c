/* A libcrypto of which one function costs a fixed time more, as when each call makes a virtual machine exit: the system's
 * library, with a wait of DEAR_NS before it. DEAR_CALL: EVP_EncryptUpdate, each call with data; DEAR_BLOCK: EVP_CipherInit_ex,
 * which begins each message.
 *
 * What the wait really takes is measured in the very process: when the library is loaded it waits some thousand times and
 * appends the result, in ns, to the file that $DEAR_LOG names. */
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

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

/* The median over 51 rounds of the mean of 100 waits: a round in which somebody else had the CPU is no measurement of the wait. */
__attribute__((constructor)) static void measure(void) {
    const char *path = getenv("DEAR_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    double rounds[51];
    for (int round = 0; round < 51; round++) {
        long start_ns = now_ns();
        for (int count = 0; count < 100; count++) wait_a_little();
        rounds[round] = (now_ns() - start_ns) / 100.0;
    }
    qsort(rounds, 51, sizeof rounds[0], compare);
    fprintf(log, "%.1f\n", rounds[25]);
    fclose(log);
}

static void *real(const char *name) { return dlsym(dlopen(LIBCRYPTO, RTLD_NOW | RTLD_LOCAL), name); }

#ifdef DEAR_CALL
int EVP_EncryptUpdate(void *context, unsigned char *out, int *out_bytes, const unsigned char *in, int in_bytes) {
    typedef int (*update_function)(void *, unsigned char *, int *, const unsigned char *, int);
    static update_function update;
    if (!update) update = (update_function)real("EVP_EncryptUpdate");
    wait_a_little();
    return update(context, out, out_bytes, in, in_bytes);
}
#endif
#ifdef DEAR_BLOCK
int EVP_CipherInit_ex(void *context, const void *kind, void *engine, const unsigned char *key, const unsigned char *iv, int way) {
    typedef int (*init_function)(void *, const void *, void *, const unsigned char *, const unsigned char *, int);
    static init_function init;
    if (!init) init = (init_function)real("EVP_CipherInit_ex");
    wait_a_little();
    return init(context, kind, engine, key, iv, way);
}
#endif
