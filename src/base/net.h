/* SPDX-License-Identifier: Apache-2.0
 *
 * net.h: what the server needs of sockets beyond its HTTP library: a listening socket with a clear
 * error, and a watch that tells when peers hang up while nobody reads their sockets. */
#ifndef BASE_NET_H
#define BASE_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "onebit.h"

struct net_listener {
    int fd;        /* non-blocking */
    uint16_t port; /* the real one, also if 0 was asked for */
    bool loopback; /* only this machine reaches it */
};

/* host: a name or an address of this machine; port 0 picks a free one. */
ob_status net_listen(const char *host, uint16_t port, struct net_listener *out, ob_error *error);
void net_close(int fd);
/* Ends a connection in both directions; its owner learns by the next read, write or poll. */
void net_cut(int fd);

struct net_watch;

/* Starts a thread that calls hangup once for each watched socket whose peer closed its sending side
 * or is gone. */
ob_status net_watch_open(void (*hangup)(void *user, uint64_t id), void *user,
                         struct net_watch **out, ob_error *error);
void net_watch_close(struct net_watch **watch);
/* id: below UINT64_MAX. A call of hangup may still be under way when remove returns. */
bool net_watch_add(struct net_watch *watch, int fd, uint64_t id);
void net_watch_remove(struct net_watch *watch, int fd);

#endif
