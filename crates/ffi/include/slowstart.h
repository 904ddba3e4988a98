/* slowstart: startups of transport connections (slow start and its successors) with congestion avoidance, and BBR.
 *
 * A stack creates a controller for each connection, tells it of every event, and after each call reads the congestion window,
 * the threshold, the pacing and the timer. Sizes are bytes, times nanoseconds since any fixed moment, rates bit/s.
 *
 * Order of calls. slowstart_on_established comes first and once. Times never decrease, nor do delivered, lost, marked and next
 * of the facts, nor upto of ACKs. The facts contain the event: what an ACK delivers is in delivered and no longer in inflight.
 * slowstart_on_sent comes before the ACK of the packet. The first signal of a loss episode has first = 1; slowstart_on_recovered
 * ends the episode, before the ACK that ends it. slowstart_on_timer comes at wake_ns or later. A library built with debug
 * assertions aborts with a message if the order is broken.
 *
 * Change of path: create a new controller (RFC 9000, section 9.4), and report to it only packets of the new path.
 *
 * Threads. No globals. Calls for one controller must not overlap; it may move from thread to thread between calls. Different
 * controllers may be used at the same time.
 *
 * Memory. Only slowstart_create and slowstart_free touch the heap.
 *
 * Versions. Each structure begins with its size: set it to sizeof. Later versions add fields at the end.
 */
#ifndef SLOWSTART_H
#define SLOWSTART_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLOWSTART_VERSION 1u
/* Stands for a number that is not known. */
#define SLOWSTART_UNKNOWN UINT64_MAX

struct slowstart_controller;

/* State of the host at the time of an event. */
struct slowstart_facts {
	uint64_t size;             /* sizeof(struct slowstart_facts) */
	uint64_t now_ns;
	uint64_t mss;              /* payload of a full packet */
	uint64_t iw;               /* initial window */
	uint64_t min_window;       /* one segment in TCP, two packets in QUIC; 0 means mss */
	uint64_t inflight;         /* sent, and neither acknowledged nor lost */
	uint64_t delivered;        /* since the connection began */
	uint64_t lost;             /* marked lost since the connection began */
	uint64_t marked;           /* delivered with a CE mark, or unknown */
	uint64_t next;             /* SND.NXT in TCP, the newest packet number in QUIC */
	uint64_t unacked;          /* SND.NXT - SND.UNA, or unknown */
	uint64_t srtt_ns;          /* or unknown */
	uint64_t min_rtt_ns;       /* or unknown */
	uint64_t rwnd;             /* the peer's receive window; unknown: unlimited */
	uint64_t pacing_rate_bps;  /* at which the host paces, or unknown */
	uint64_t unsent;           /* queued by the application and not sent, or unknown */
	uint64_t host_queue_used;  /* the interface queue, or unknown */
	uint64_t host_queue_limit;
	uint64_t nic_rate_bps;     /* or unknown */
	uint32_t supports_pacing;  /* 1 if the host paces as the state asks */
	uint32_t pacing_on;        /* 1 if it paces at present */
	uint32_t in_recovery;      /* 1 between start and end of a loss episode */
	uint32_t reserved;         /* 0 */
};

/* A packet that was sent. The fields after bytes are read only if slowstart_needs_delivery_state. */
struct slowstart_sent {
	uint64_t size;             /* sizeof(struct slowstart_sent) */
	uint64_t mark;             /* in TCP the end of its data, in QUIC its number */
	uint64_t at_ns;
	uint64_t bytes;
	uint64_t sent_total;       /* bytes sent so far, it included */
	uint64_t inflight;         /* it included */
	uint64_t delivered;        /* of the facts at that time */
	uint64_t delivered_at_ns;  /* when that had last increased */
	uint64_t first_sent_at_ns; /* of the first packet of its delivery-rate sample */
	uint64_t lost;             /* of the facts at that time */
	uint64_t cwnd;
	uint32_t retransmission;   /* 1 if its data had been sent before */
	uint32_t app_limited;      /* 1 if the application limited the sender */
};

enum slowstart_limit {
	SLOWSTART_BY_WINDOW = 0,
	SLOWSTART_BY_PACER = 1,
	SLOWSTART_BY_APPLICATION = 2,
	SLOWSTART_BY_PEER = 3,
};

struct slowstart_ack {
	uint64_t size;             /* sizeof(struct slowstart_ack) */
	uint64_t upto;             /* SND.UNA in TCP, the newest packet acknowledged in QUIC */
	uint64_t bytes;            /* for which the window may grow */
	uint64_t delivered;        /* newly */
	uint64_t newly_lost;
	uint64_t prior_inflight;
	uint64_t rtt_ns;           /* its sample, or unknown */
	uint64_t limit;            /* enum slowstart_limit: what limited the sender of that data */
	struct slowstart_sent newest; /* the most recently sent packet that it delivers; set its size too */
};

struct slowstart_handshake {
	uint64_t size;             /* sizeof(struct slowstart_handshake) */
	uint64_t rtt_ns;           /* or unknown */
	uint64_t syn_losses;       /* how often our SYN was sent again */
	uint64_t spurious;         /* 1 if that proved unnecessary */
	uint64_t granted_bps;      /* Quick-Start, or unknown */
	uint64_t remembered_cwnd;  /* of an earlier connection on this path, or unknown */
	uint64_t remembered_rtt_ns;
	uint64_t remembered_rate_bps;
};

enum slowstart_pace {
	SLOWSTART_PACE_HOST = 0,   /* by the host's own rule */
	SLOWSTART_PACE_OFF = 1,
	SLOWSTART_PACE_GAIN = 2,   /* at pace 1024ths of cwnd / SRTT */
	SLOWSTART_PACE_RATE = 3,   /* at pace bit/s */
};

/* What the host takes after each call. */
struct slowstart_state {
	uint64_t size;             /* sizeof(struct slowstart_state) */
	uint64_t cwnd;
	uint64_t ssthresh;         /* unknown: arbitrarily high */
	uint64_t wake_ns;          /* when to call slowstart_on_timer; unknown: never */
	uint64_t pace_kind;        /* enum slowstart_pace */
	uint64_t pace;
	uint64_t resend;           /* retransmit the packet that ends this far before the end of the data sent; or unknown */
	uint64_t exit_detected_ns; /* unknown while the startup lasts */
	uint64_t exit_detected_cwnd;
	uint64_t exit_cwnd;
	const char *exit_why;      /* a static string such as "loss", or NULL */
};

enum slowstart_signal {
	SLOWSTART_LOSS = 0,
	SLOWSTART_ECN = 1,
	SLOWSTART_TIMEOUT = 2,     /* in QUIC persistent congestion */
	SLOWSTART_LOCAL_STALL = 3, /* the host's interface queue refused a packet */
};

uint32_t slowstart_version(void);

/* Returns the controller of a new connection, or NULL and a reason in error. startup is such as "search" or "hystart:low=8",
 * avoidance such as "cubic"; NULL means "standard" and "cubic". seed determines random numbers (of BBR). */
struct slowstart_controller *slowstart_create(const char *startup, const char *avoidance, uint64_t iw, uint64_t seed,
                                              char *error, size_t error_len);
void slowstart_free(struct slowstart_controller *c);

/* Each returns 0, or -1 for a null pointer, a size below 8, no mss, a number that no enum has, or a timer that is not due. */
int slowstart_on_established(struct slowstart_controller *c, const struct slowstart_facts *f, const struct slowstart_handshake *hs);
int slowstart_on_sent(struct slowstart_controller *c, const struct slowstart_facts *f, const struct slowstart_sent *s);
int slowstart_on_ack(struct slowstart_controller *c, const struct slowstart_facts *f, const struct slowstart_ack *a);
int slowstart_on_congestion(struct slowstart_controller *c, const struct slowstart_facts *f, uint32_t signal, uint32_t first,
                            uint64_t lost, uint32_t lost_ranges, const struct slowstart_sent *newest);
int slowstart_on_recovered(struct slowstart_controller *c, const struct slowstart_facts *f, uint64_t retransmitted, uint32_t undone);
int slowstart_on_timer(struct slowstart_controller *c, const struct slowstart_facts *f);
/* restart_ns: the retransmission timeout if the host restarts its window after idle time (RFC 5681, section 4.1), or unknown. */
int slowstart_on_idle(struct slowstart_controller *c, const struct slowstart_facts *f, uint64_t idle_ns, uint64_t restart_ns);
int slowstart_get_state(const struct slowstart_controller *c, struct slowstart_state *into);

/* 1 or 0. */
int slowstart_needs_sent(const struct slowstart_controller *c);           /* slowstart_on_sent has an effect at present */
int slowstart_needs_delivery_state(const struct slowstart_controller *c); /* slowstart_sent is read beyond bytes */
int slowstart_needs_marks(const struct slowstart_controller *c);          /* a host without marked must not use it */

#ifdef __cplusplus
}
#endif
#endif
