/* Preloaded into a program (LD_PRELOAD), this loses byte LOST_BYTE of every file whose path contains LOST_IN. The bytes before
   it can be read; the byte itself gives EIO, as on a disk with a bad sector. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns how many of count bytes from offset at can be read; -1 if the first is lost. */
static ssize_t readable(int fd, size_t count, off64_t at)
{
    const char *part = getenv("LOST_IN"), *byte = getenv("LOST_BYTE");
    char link[64], path[4096];
    if (!part || !byte || at < 0)
        return count;
    off64_t lost = strtoll(byte, NULL, 10);
    if (lost < at || lost >= at + (off64_t)count)
        return count;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if (!strstr(path, part))
        return count;
    errno = EIO;
    return lost == at ? -1 : lost - at;
}

ssize_t pread64(int fd, void *to, size_t count, off64_t at)
{
    ssize_t some = readable(fd, count, at);
    return some < 0 ? -1 : syscall(SYS_pread64, fd, to, (size_t)some, at);
}

ssize_t read(int fd, void *to, size_t count)
{
    ssize_t some = readable(fd, count, lseek64(fd, 0, SEEK_CUR));
    return some < 0 ? -1 : syscall(SYS_read, fd, to, (size_t)some);
}
