//! Analyses captures and logs of real connections: when slow start ended, whether that was early,
//! with the link full or late, and what each startup algorithm would have done on the same path.
//!
//! # From a file
//!
//! [`replay::replay`] reads a file of any supported kind and returns a row for each transfer;
//! [`replay::stream`] hands over each row as soon as its connection is over. This example writes a simulated
//! download as a capture and reads it:
//!
//! ```
//! use slowstart_study::run::Job;
//! use slowstart_study::scenario::{Study, StudyText, startup};
//! use slowstart_replay::observer::Candidate;
//! use slowstart_replay::open::detect;
//! use slowstart_replay::replay::{Options, read};
//! use slowstart_replay::wire;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let study = StudyText {
//!     path: "rate=20Mbit rtt=40ms queue=1bdp".to_string(),
//!     startups: vec!["standard".to_string()],
//!     size: Some("2MB".to_string()),
//!     ..StudyText::default()
//! };
//! let run = Study::check(&study, None)?.capture(Job { contender: 0, run: 0 });
//! let mut capture = Vec::new();
//! wire::write(&mut capture, &run.trace.packets, 0)?;
//!
//! let (kind, input) = detect(Box::new(std::io::Cursor::new(capture)))?;
//! let hystart = Candidate { label: "hystart".to_string(), startup: startup("startup", "hystart")?.1 };
//! let options = Options { candidates: [hystart].into(), min_bytes: 1_000_000, ..Options::default() };
//! let report = read(kind, input, &options, |_| {})?;
//! let row = &report.transfers[0].row;
//! let exit = row.exit.as_ref().expect("slow start overfills the queue");
//! assert_eq!(exit.evidence, "loss");
//! let hystart = &row.startups[0];
//! assert!(hystart.exit.as_ref().is_some_and(|e| e.time_s < exit.time_s));
//! # Ok(())
//! # }
//! ```
//!
//! # From events
//!
//! A program that has a connection's events in a form of its own drives an [`analysis::Analysis`]. Each call
//! gets the facts at that time; [`analysis::Analysis::finish`] returns the findings:
//!
//! ```
//! use slowstart::startup::REGISTRY;
//! use slowstart::units::{Bytes, Instant, SendOrder, Span};
//! use slowstart::view::{Ack, Handshake, Limit, Sent};
//! use slowstart_replay::analysis::{Analysis, Keep, Setup, facts};
//! use slowstart_replay::observer::Candidate;
//!
//! let mss = Bytes(1000);
//! let setup = Setup {
//!     mss,
//!     iw: Some(mss * 10),
//!     gated: true,
//!     handshake: Handshake::default(),
//!     keep: Keep::default(),
//! };
//! let candidates: Vec<_> =
//!     REGISTRY.iter().map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
//! let mut analysis = Analysis::new(setup, &candidates.into());
//! let (mut f, mut total) = (facts(mss), Bytes::ZERO);
//! // Rounds of 50 ms: the window doubles from 10 to 80 segments and stays there.
//! for (round, window) in [10, 20, 40, 80, 80, 80, 80, 80].into_iter().enumerate() {
//!     f.now = Instant::ZERO + Span::millis(50) * round as u64;
//!     for _ in 0..window {
//!         total += mss;
//!         (f.next, f.inflight) = (SendOrder::new(total.0), f.inflight + mss);
//!         let sent = Sent { mark: f.next, at: f.now, bytes: mss, inflight: f.inflight, ..Sent::default() };
//!         analysis.sent(&f, &sent, false);
//!     }
//!     let (sent_at, prior) = (f.now, f.inflight);
//!     (f.now, f.inflight) = (f.now + Span::millis(50), Bytes::ZERO);
//!     (f.delivered, f.min_rtt) = (f.delivered + prior, Some(Span::millis(50)));
//!     let mut ack = Ack::new(Sent::default(), prior, prior);
//!     (ack.upto, ack.rtt) = (f.next, Some(f.now.since(sent_at)));
//!     analysis.ack(&f, &ack);
//! }
//! let findings = analysis.finish(None);
//! let exit = findings.observed.expect("growth stopped");
//! assert_eq!((exit.cwnd, exit.evidence.words()), (mss * 80, "growth stopped without loss"));
//! ```
//!
//! # Modules
//!
//! Each depends only on modules above it.
//!
//! - [`error`]: errors of a file
//! - [`limits`]: limits on memory
//! - [`open`]: kinds of files, decompression
//! - [`capture`]: pcap, pcapng and snoop, as a stream of TCP packets
//! - [`observer`]: a startup that observes a connection
//! - [`infer`]: the end of slow start, inferred from bytes in flight
//! - [`capacity`]: when the path was full
//! - [`packets`]: what was sent and acknowledged, kept for the fit of a path
//! - [`analysis`]: the analysis of a sender's events
//! - [`sender`]: the sender, reconstructed from its packets and ACKs
//! - [`connection`]: the two directions of a connection, and the vantage point
//! - [`continued`]: the table of a transfer that was continued in the simulator
//! - [`table`]: the live connections of a capture
//! - [`fit`]: a path fitted to a transfer
//! - [`fork`]: continuation of a transfer with each startup over that path
//! - [`transfer`]: the row of a connection in one direction
//! - [`kernlog`]: per-ACK logs of a kernel
//! - [`events`]: events of startups in a running kernel
//! - [`counters`]: what a kernel counts beside its window
//! - [`samples`]: sampled windows, and rows of `slowstart compare`
//! - [`ss`]: repeated output of `ss`
//! - [`flent`]: data files of flent
//! - [`mlab`]: NDT7 and `tcp-info` of M-Lab
//! - [`iperf`]: results of iperf3
//! - [`probe`]: the tracepoint `tcp:tcp_probe` as text
//! - [`qlog`]: qlog of QUIC and of simulated runs
//! - [`netlog`]: logs of Chrome's network stack
//! - [`wire`]: simulated runs written as captures
//! - [`answer`]: the answer for a transfer in sentences
//! - [`page`]: a transfer as an HTML page
//! - [`population`]: many transfers at once
//! - [`replay`]: a file of any kind
//! - [`advise`]: which startup recordings speak for

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod advise;
pub mod analysis;
pub mod answer;
pub mod capacity;
pub mod capture;
mod clock;
pub mod connection;
pub mod continued;
pub mod counters;
pub mod error;
pub mod events;
mod filled;
pub mod fit;
pub mod flent;
pub mod folder;
pub mod fork;
pub mod infer;
pub mod iperf;
pub mod kernlog;
pub mod limits;
pub mod mlab;
pub mod naming;
pub mod netlog;
pub mod observer;
pub mod open;
pub mod own;
pub mod packets;
pub mod page;
pub mod population;
pub mod probe;
pub mod qlog;
pub mod replay;
pub mod samples;
pub mod sender;
pub mod ss;
pub mod table;
mod track;
pub mod transfer;
pub mod wire;
