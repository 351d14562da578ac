/* A wall clock that can be set, for programs that are started with this in LD_PRELOAD. Only what
 * tells the time of day is shifted; clocks that count since some moment go on as they are. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *milliseconds;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LOCKKIT_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) milliseconds = page;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, id, at);
    int wall = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
    if (failed || !wall || !milliseconds) return failed;
    int64_t off = *milliseconds;
    int64_t nanos = at->tv_nsec + off % 1000 * 1000000;
    at->tv_sec += off / 1000 + (nanos >= 1000000000) - (nanos < 0);
    at->tv_nsec = (nanos + 1000000000) % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    if (failed) return failed;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
