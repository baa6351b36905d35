/* A libcrypto of which one function costs a fixed time more, as when each call makes a virtual machine exit: the system's
 * library, with a wait of DEAR_NS before it. DEAR_CALL: EVP_EncryptUpdate, each call with data; DEAR_BLOCK: EVP_CipherInit_ex,
 * which begins each message.
 *
 * What that really costs is measured in the very process: when the library is loaded it does the function some thousand times with
 * the wait and without, in turn, and appends the difference, in ns, to the file that $DEAR_LOG names. A wait by itself would
 * not tell: a look at the clock also waits until the work before it has left the CPU's pipeline. */
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

static void *real(const char *name) {
    static void *library;
    if (!library) library = dlopen(LIBCRYPTO, RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}

typedef int (*update_function)(void *, unsigned char *, int *, const unsigned char *, int);
typedef int (*init_function)(void *, const void *, void *, const unsigned char *, const unsigned char *, int);
typedef void *(*make_function)(void);

#ifdef DEAR_CALL
int EVP_EncryptUpdate(void *context, unsigned char *out, int *out_bytes, const unsigned char *in, int in_bytes) {
    static update_function update;
    if (!update) update = (update_function)real("EVP_EncryptUpdate");
    wait_a_little();
    return update(context, out, out_bytes, in, in_bytes);
}
#else
int EVP_CipherInit_ex(void *context, const void *kind, void *engine, const unsigned char *key, const unsigned char *iv, int way) {
    static init_function init;
    if (!init) init = (init_function)real("EVP_CipherInit_ex");
    wait_a_little();
    return init(context, kind, engine, key, iv, way);
}
#endif

/* The median over 51 rounds of the difference that the wait makes to 100 messages of 64 bytes: a round in which somebody else had
 * the CPU is no measurement of it. */
__attribute__((constructor)) static void measure(void) {
    const char *path = getenv("DEAR_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    static unsigned char key[32], iv[16], block[64];
    void *context = ((make_function)real("EVP_CIPHER_CTX_new"))();
    init_function init[2] = {(init_function)real("EVP_CipherInit_ex"), (init_function)real("EVP_CipherInit_ex")};
    update_function update[2] = {(update_function)real("EVP_EncryptUpdate"), (update_function)real("EVP_EncryptUpdate")};
#ifdef DEAR_CALL
    update[1] = EVP_EncryptUpdate;
#else
    init[1] = EVP_CipherInit_ex;
#endif
    init[0](context, ((make_function)real("EVP_aes_128_ctr"))(), NULL, key, iv, 1);
    double rounds[51];
    for (int round = 0; round < 51; round++) {
        double took_ns[2];
        for (int slow = 0; slow < 2; slow++) {
            long start_ns = now_ns();
            for (int count = 0, bytes; count < 100; count++) {
                init[slow](context, NULL, NULL, NULL, iv, 1);
                update[slow](context, block, &bytes, block, sizeof block);
            }
            took_ns[slow] = (now_ns() - start_ns) / 100.0;
        }
        rounds[round] = took_ns[1] - took_ns[0];
    }
    qsort(rounds, 51, sizeof rounds[0], compare);
    fprintf(log, "%.1f\n", rounds[25]);
    fclose(log);
}
