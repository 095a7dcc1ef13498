/* SPDX-License-Identifier: Apache-2.0
 * net_posix.c: sockets on Linux; see net.h. The watch is an epoll set beside the HTTP library's
 * own: it asks for hang-ups alone, so data that waits to be read does not wake it. */
#include "base/net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os.h"

/* ---- listening ------------------------------------------------------------------------------- */

static bool is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static int open_socket(const struct addrinfo *address) {
    int one = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, 128) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static uint16_t port_of(int fd) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t n = sizeof address;
    if (getsockname(fd, &address.any, &n) != 0) return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

ob_status net_listen(const char *host, uint16_t port, struct net_listener *out, ob_error *error) {
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    char number[8];
    snprintf(number, sizeof number, "%u", port);
    int failed = getaddrinfo(host, number, &want, &found);
    if (failed)
        return error_set(error, OB_ERR_NOT_FOUND, "cannot listen on host \"%s\": %s", host,
                         failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
    out->fd = open_socket(found);
    out->loopback = is_loopback(found->ai_addr);
    freeaddrinfo(found);
    if (out->fd >= 0) {
        out->port = port_of(out->fd);
        return OB_OK;
    }
    if (errno == EADDRINUSE)
        return error_set(error, OB_ERR_BUSY, "port %u on %s is in use by another program", port,
                         host);
    return error_set(error, OB_ERR_IO, "cannot listen on %s port %u: %s", host, port,
                     strerror(errno));
}

void net_close(int fd) { close(fd); }
void net_cut(int fd) { shutdown(fd, SHUT_RDWR); }

/* ---- hang-ups -------------------------------------------------------------------------------- */

#define STOP UINT64_MAX

struct net_watch {
    int epoll, stop;
    os_thread thread;
    void (*hangup)(void *user, uint64_t id);
    void *user;
};

static void *watch_main(void *arg) {
    struct net_watch *watch = arg;
    struct epoll_event event[16];
    for (;;) {
        int n = epoll_wait(watch->epoll, event, 16, -1);
        for (int i = 0; i < n; i++) {
            if (event[i].data.u64 == STOP) return NULL;
            watch->hangup(watch->user, event[i].data.u64);
        }
    }
}

static void watch_free(struct net_watch *watch) {
    if (watch->epoll >= 0) close(watch->epoll);
    if (watch->stop >= 0) close(watch->stop);
    free(watch);
}

ob_status net_watch_open(void (*hangup)(void *user, uint64_t id), void *user,
                         struct net_watch **out, ob_error *error) {
    *out = NULL;
    struct net_watch *watch = malloc(sizeof *watch);
    if (!watch) return error_memory(error, "the watch of connections", sizeof *watch);
    *watch = (struct net_watch){.epoll = epoll_create1(EPOLL_CLOEXEC),
                                .stop = eventfd(0, EFD_CLOEXEC),
                                .hangup = hangup, .user = user};
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = STOP};
    if (watch->epoll < 0 || watch->stop < 0 ||
        epoll_ctl(watch->epoll, EPOLL_CTL_ADD, watch->stop, &event) != 0 ||
        !os_thread_start(&watch->thread, watch_main, watch)) {
        error_set(error, OB_ERR_IO, "cannot watch connections: %s", strerror(errno));
        watch_free(watch);
        return OB_ERR_IO;
    }
    *out = watch;
    return OB_OK;
}

void net_watch_close(struct net_watch **p) {
    struct net_watch *watch = *p;
    if (!watch) return;
    eventfd_write(watch->stop, 1);
    os_thread_join(&watch->thread);
    watch_free(watch);
    *p = NULL;
}

bool net_watch_add(struct net_watch *watch, int fd, uint64_t id) {
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.u64 = id};
    return epoll_ctl(watch->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void net_watch_remove(struct net_watch *watch, int fd) {
    struct epoll_event event = {0}; /* old kernels want one */
    epoll_ctl(watch->epoll, EPOLL_CTL_DEL, fd, &event);
}
