/* slowstart: startups of transport connections (slow start and its successors) with congestion avoidance, and BBR.
 *
 * Direction one: a stack in C embeds a controller of slowstart. It creates one for each connection, tells it of every event, and
 * after each call reads the congestion window, the threshold, the pacing and the timer. Direction two: a controller in C runs in
 * slowstart's simulator; see struct slowstart_plugin. Sizes are bytes, times nanoseconds since any fixed moment, rates bit/s.
 *
 * Order of calls. established comes first and once. Times never decrease, nor do delivered, lost, marked and next of the facts,
 * nor upto of ACKs. The facts contain the event: what an ACK delivers is in delivered and no longer in inflight. sent comes before
 * the ACK of the packet. The first signal of a loss episode has first = 1; recovered ends the episode, before the ACK that ends it.
 * timer comes at wake_ns or later. A library built with debug assertions aborts with a message if the order is broken.
 *
 * Change of path: create a new controller (RFC 9000, section 9.4), and report to it only packets of the new path.
 *
 * Threads. No globals. Calls for one controller must not overlap; it may move from thread to thread between calls. Different
 * controllers may be used at the same time.
 *
 * Memory. Of this library's functions only slowstart_create and slowstart_free touch the heap.
 *
 * Versions. Each structure begins with its size: set it to sizeof. Later versions add fields at the end.
 *
 * This file is generated: `SLOWSTART_BLESS=1 cargo test -p slowstart-ffi --test header` writes it.
 */

#ifndef SLOWSTART_H
#define SLOWSTART_H

#include <stddef.h>
#include <stdint.h>

// The version of this interface. A larger one adds functions and fields at the end of structures.
#define SLOWSTART_VERSION 1

// Stands for a number that is not known.
#define SLOWSTART_UNKNOWN UINT64_MAX

// The largest window, in bytes: 2^40.
#define SLOWSTART_MOST_WINDOW 1099511627776

// Packets were marked lost.
#define SLOWSTART_LOSS 0

// The network marked packets.
#define SLOWSTART_ECN 1

// A retransmission timeout; in QUIC persistent congestion.
#define SLOWSTART_TIMEOUT 2

// The host's interface queue refused a packet.
#define SLOWSTART_LOCAL_STALL 3

// What limited the sender: the window.
#define SLOWSTART_BY_WINDOW 0

// The pacer limited the sender when the packet was sent.
#define SLOWSTART_BY_PACER 1

// The application, which had nothing to send.
#define SLOWSTART_BY_APPLICATION 2

// The peer's receive window.
#define SLOWSTART_BY_PEER 3

// The plugin reads slowstart_sent beyond bytes.
#define SLOWSTART_NEEDS_DELIVERY_STATE 1

// The plugin limits sending during recovery itself. Without it the simulator's proportional rate reduction
// does.
#define SLOWSTART_OWNS_RECOVERY 2

// Pacing by the host's own rule.
#define SLOWSTART_PACE_HOST 0

// Packets are not paced: they leave as soon as the window allows.
#define SLOWSTART_PACE_OFF 1

// At pace 1024ths of cwnd / SRTT.
#define SLOWSTART_PACE_GAIN 2

// Packets leave at the rate in pace, in bits per second.
#define SLOWSTART_PACE_RATE 3

// The controller of one connection.
struct slowstart_controller;

// State of the host at the time of an event. Sizes are bytes, times nanoseconds since any fixed moment.
struct slowstart_facts {
    // The bytes of this structure, sizeof, by which its version is known.
    uint64_t size;
    // The time. It never decreases.
    uint64_t now_ns;
    // Payload of a full packet: from 1 to 2^20.
    uint64_t mss;
    // The initial window of the host, in bytes: from 1 to SLOWSTART_MOST_WINDOW.
    uint64_t iw;
    // The least window: one segment in TCP, two packets in QUIC; 0 means mss.
    uint64_t min_window;
    // Sent, and neither acknowledged nor lost.
    uint64_t inflight;
    // Delivered since the connection began.
    uint64_t delivered;
    // Marked lost since the connection began.
    uint64_t lost;
    // Delivered in packets with a CE mark; unknown if the host does not count them.
    uint64_t marked;
    // The newest packet sent, in the order of sending: SND.NXT in TCP, the packet number in QUIC.
    uint64_t next;
    // SND.NXT - SND.UNA; unknown without a cumulative acknowledgement.
    uint64_t unacked;
    // Smoothed round-trip time, or unknown.
    uint64_t srtt_ns;
    // Minimum round-trip time, or unknown.
    uint64_t min_rtt_ns;
    // The peer's receive window; unknown means unlimited.
    uint64_t rwnd;
    // The rate at which the host paces, bit/s, or unknown.
    uint64_t pacing_rate_bps;
    // What the application has queued and that has not been sent, or unknown.
    uint64_t unsent;
    // Bytes in the host's interface queue, or unknown.
    uint64_t host_queue_used;
    // The bytes that the interface's queue can hold, or unknown.
    uint64_t host_queue_limit;
    // The rate of the interface, bit/s, or unknown.
    uint64_t nic_rate_bps;
    // 1 if the host can pace as the state asks, otherwise 0.
    uint32_t supports_pacing;
    // 1 if the host paces at present.
    uint32_t pacing_on;
    // 1 between start and end of a loss episode.
    uint32_t in_recovery;
    // Not used; set it to 0.
    uint32_t reserved;
    // The largest burst that the host passes to its interface at once; 0 if it sends packet by packet.
    uint64_t gso_max;
};

// How the connection was established.
struct slowstart_handshake {
    // The bytes of this structure, sizeof, by which its version is known.
    uint64_t size;
    // The round-trip time of the handshake, or unknown.
    uint64_t rtt_ns;
    // How many times the host's SYN was retransmitted; 0 in QUIC.
    uint64_t syn_losses;
    // 1 if those retransmissions proved unnecessary.
    uint64_t spurious;
    // The rate that routers granted (Quick-Start), bit/s, or unknown.
    uint64_t granted_bps;
    // An earlier connection's window at its end, or unknown.
    uint64_t remembered_cwnd;
    // Its minimum round-trip time.
    uint64_t remembered_rtt_ns;
    // Its rate at its end, bit/s.
    uint64_t remembered_rate_bps;
};

// What the host takes from the controller after each call.
struct slowstart_state {
    // The bytes of this structure, sizeof, by which its version is known.
    uint64_t size;
    // The congestion window, in bytes.
    uint64_t cwnd;
    // The slow-start threshold; unknown while it is arbitrarily high.
    uint64_t ssthresh;
    // When to call the timer's function; unknown means never.
    uint64_t wake_ns;
    // How to pace, such as SLOWSTART_PACE_HOST.
    uint64_t pace_kind;
    // The gain or the rate that pace_kind names; 0 where it names none.
    uint64_t pace;
    // The packet to retransmit now ends this many bytes before the end of the data sent; unknown if none is
    // asked for. It is that of the newest call alone.
    uint64_t resend;
    // When the startup detected its reason to end; unknown while it lasts.
    uint64_t exit_detected_ns;
    // The window at that time.
    uint64_t exit_detected_cwnd;
    // The window when it left.
    uint64_t exit_cwnd;
    // Why, or null: "ssthresh", "loss", "ecn", "timeout", "local-stall", "ack-train", "delay", "css-rounds",
    // "rate-flat", "estimate", or "other". A plugin may set a static string of its own; results say "other".
    const char *exit_why;
};

// A packet that was sent, with the state at that time. The fields after bytes are read only by a controller
// that needs the delivery state, and may be 0 otherwise.
struct slowstart_sent {
    // The bytes of this structure, sizeof, by which its version is known.
    uint64_t size;
    // Its place in the order of sending: in TCP the end of its data, in QUIC its number.
    uint64_t mark;
    // When it was sent.
    uint64_t at_ns;
    // The bytes of its payload, as they count in the window.
    uint64_t bytes;
    // Bytes sent so far, it included.
    uint64_t sent_total;
    // Bytes in flight, it included.
    uint64_t inflight;
    // delivered of the facts at that time.
    uint64_t delivered;
    // When that had last increased.
    uint64_t delivered_at_ns;
    // When the first packet of its delivery-rate sample was sent.
    uint64_t first_sent_at_ns;
    // lost of the facts at that time.
    uint64_t lost;
    // The window at that time.
    uint64_t cwnd;
    // 1 if its data had been sent before.
    uint32_t retransmission;
    // 1 if the application, not the window, limited the sender.
    uint32_t app_limited;
};

// An acknowledgement, with what it says of the packets that it covers.
struct slowstart_ack {
    // The bytes of this structure, sizeof, by which its version is known.
    uint64_t size;
    // How far acknowledgements have advanced in the order of sending: SND.UNA in TCP, the newest packet
    // acknowledged in QUIC. It never decreases.
    uint64_t upto;
    // Bytes for which the window may grow.
    uint64_t bytes;
    // The bytes that this acknowledgement delivered and none before it.
    uint64_t delivered;
    // Bytes newly marked lost.
    uint64_t newly_lost;
    // Bytes in flight before it.
    uint64_t prior_inflight;
    // Its round-trip sample, or unknown.
    uint64_t rtt_ns;
    // What limited the sender of that data, such as SLOWSTART_BY_WINDOW. The window may grow if it was the
    // window or the pacer.
    uint64_t limit;
    // The most recently sent packet that it delivers; its size is set too.
    struct slowstart_sent newest;
};

// Congestion, as a plugin is told of it.
struct slowstart_congestion {
    // The bytes of this structure, sizeof, by which its version is known.
    uint64_t size;
    // Which signal, such as SLOWSTART_LOSS.
    uint32_t signal;
    // 1 for the first signal of an episode.
    uint32_t first;
    // Bytes newly marked lost.
    uint64_t lost;
    // In how many separate ranges.
    uint32_t lost_ranges;
    // Not used; set it to 0.
    uint32_t reserved;
    // The most recently sent packet known to be delivered.
    struct slowstart_sent newest;
};

// A congestion control in a library, for `--startup plugin:FILE`.
//
// The order of calls is that of the functions of this header. Each function gets the controller that create
// returned, and state: the window and all else as the plugin left it, but resend, which is unknown, and, in
// timer, wake_ns, which is unknown too. It writes there what has changed. It sets exit_detected_ns,
// exit_detected_cwnd, exit_cwnd and exit_why when its slow start ends for the first time, and
// exit_detected_ns to unknown if that end is void.
//
// Runs of several connections happen at the same time in several threads, so there must be no global state.
// Results repeat only if the plugin reads no clock and no random numbers but seed.
//
// Functions that may be null: sent, recovered, timer, idle.
struct slowstart_plugin {
    // The bytes of this structure, sizeof, by which its version is known.
    uint64_t size;
    // SLOWSTART_VERSION of the header.
    uint64_t version;
    // SLOWSTART_NEEDS_DELIVERY_STATE and others, or 0.
    uint64_t flags;
    // Returns the controller of a new connection, with the initial window iw, or null.
    void *(*create)(uint64_t iw, uint64_t seed);
    // Ends a controller: frees what create allocated for it.
    void (*destroy)(void *controller);
    // The connection is established: first, and once. state has the initial window.
    void (*established)(void *controller,
                        const struct slowstart_facts *f,
                        const struct slowstart_handshake *hs,
                        struct slowstart_state *state);
    // A packet is being sent.
    void (*sent)(void *controller,
                 const struct slowstart_facts *f,
                 const struct slowstart_sent *sent,
                 struct slowstart_state *state);
    // An ACK has arrived.
    void (*ack)(void *controller,
                const struct slowstart_facts *f,
                const struct slowstart_ack *ack,
                struct slowstart_state *state);
    // Called on a loss, a mark, a timeout or a stall of the host's own queue.
    void (*congestion)(void *controller,
                       const struct slowstart_facts *f,
                       const struct slowstart_congestion *congestion,
                       struct slowstart_state *state);
    // A loss episode ended, in which retransmitted bytes were sent again; undone is 1 if all of them proved
    // unnecessary.
    void (*recovered)(void *controller,
                      const struct slowstart_facts *f,
                      uint64_t retransmitted,
                      uint32_t undone,
                      struct slowstart_state *state);
    // The time in wake_ns has come.
    void (*timer)(void *controller, const struct slowstart_facts *f, struct slowstart_state *state);
    // Sending begins after nothing was in flight for idle_ns. restart_ns is the retransmission timeout if
    // the host restarts its window (RFC 5681, section 4.1), else unknown.
    void (*idle)(void *controller,
                 const struct slowstart_facts *f,
                 uint64_t idle_ns,
                 uint64_t restart_ns,
                 struct slowstart_state *state);
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What the library of a plugin defines: returns its structure, which lives as long as the library.
extern const struct slowstart_plugin *slowstart_get_plugin(void);

// The connection is established. To be called first, and once. Returns 0, or -1 for a bad argument, as all
// functions do.
//
// # Safety
// `c` is of `slowstart_create`; `f` and `hs` point to structures whose `size` is set.
int slowstart_on_established(struct slowstart_controller *c,
                             const struct slowstart_facts *f,
                             const struct slowstart_handshake *hs);

// A packet is being sent. Needed only while `slowstart_needs_sent` says so.
//
// # Safety
// As of `slowstart_on_established`.
int slowstart_on_sent(struct slowstart_controller *c, const struct slowstart_facts *f, const struct slowstart_sent *s);

// An ACK has arrived. The facts contain what it delivered.
//
// # Safety
// As of `slowstart_on_established`.
int slowstart_on_ack(struct slowstart_controller *c, const struct slowstart_facts *f, const struct slowstart_ack *a);

// Congestion: `signal` is 0 for packets marked lost, 1 for ECN marks, 2 for a retransmission timeout (in
// QUIC persistent congestion), 3 for a refusal of the host's own interface queue. `first` is 1 for the first
// signal of an episode. `lost` is what was newly marked lost, in `lost_ranges` separate ranges. `newest` is
// the most recently sent packet known to be delivered.
//
// # Safety
// As of `slowstart_on_established`.
int slowstart_on_congestion(struct slowstart_controller *c,
                            const struct slowstart_facts *f,
                            uint32_t signal,
                            uint32_t first,
                            uint64_t lost,
                            uint32_t lost_ranges,
                            const struct slowstart_sent *newest);

// A loss episode ended, in which `retransmitted` bytes were sent again; `undone` is 1 if all of them proved
// unnecessary.
//
// # Safety
// As of `slowstart_on_established`.
int slowstart_on_recovered(struct slowstart_controller *c,
                           const struct slowstart_facts *f,
                           uint64_t retransmitted,
                           uint32_t undone);

// The time in `wake_ns` of the state has come.
//
// # Safety
// As of `slowstart_on_established`.
int slowstart_on_timer(struct slowstart_controller *c, const struct slowstart_facts *f);

// Sending begins after nothing was in flight for `idle_ns`. `restart_ns` is the retransmission timeout if
// the host's rules require a restart window (RFC 5681 §4.1), else unknown.
//
// # Safety
// As of `slowstart_on_established`.
int slowstart_on_idle(struct slowstart_controller *c,
                      const struct slowstart_facts *f,
                      uint64_t idle_ns,
                      uint64_t restart_ns);

// Returns the controller of a new connection, or null.
//
// `startup` is a name with parameters, such as `"search"` or `"hystart:low=8"`; `avoidance` likewise, such
// as `"cubic"`. `iw` is the initial window in bytes, from 1 to 2^40; `seed` determines random numbers (of BBR). On failure
// the reason is written to `error`, a buffer of `error_len` bytes, or null. The only function that
// allocates.
//
// # Safety
// `startup` and `avoidance` are strings that end with a zero, or null (then `"standard"` and `"cubic"`).
struct slowstart_controller *slowstart_create(const char *startup,
                                              const char *avoidance_name,
                                              uint64_t iw,
                                              uint64_t seed,
                                              char *error,
                                              size_t error_len);

// Writes the name of startup number `index` into `name`, a buffer of `len` bytes, cut to its length and ended
// by a zero. Returns 0, or -1 past the last one: count up from 0 to list them all.
//
// # Safety
// `name` points to `len` writable bytes, or is null.
int slowstart_startup(size_t index, char *name, size_t len);

// Ends a controller. Null is permitted.
//
// # Safety
// `c` is of `slowstart_create` and is not used afterwards.
void slowstart_free(struct slowstart_controller *c);

// Writes the state to `into`, as much as `into->size` says.
//
// # Safety
// `c` is of `slowstart_create`; `into` points to as many writable bytes as its `size` says.
int slowstart_get_state(const struct slowstart_controller *c, struct slowstart_state *into);

// Returns 1 if `slowstart_on_sent` has an effect at present, else 0.
//
// # Safety
// `c` is of `slowstart_create`, or null.
int slowstart_needs_sent(const struct slowstart_controller *c);

// Returns 1 if the fields of `slowstart_sent` after `bytes` are read, else 0.
//
// # Safety
// `c` is of `slowstart_create`, or null.
int slowstart_needs_delivery_state(const struct slowstart_controller *c);

// Returns 1 if the avoidance needs the number of marked bytes (`marked` of the facts), else 0. A host that
// does not count them must not use it.
//
// # Safety
// `c` is of `slowstart_create`, or null.
int slowstart_needs_marks(const struct slowstart_controller *c);

// Returns the version of the interface that the library has, to compare with `SLOWSTART_VERSION` of the
// header.
uint32_t slowstart_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SLOWSTART_H */
