//! No input causes a panic of a parser: it returns an error with a location, or rows for what it could read.
//!
//! Each case damages a valid file of one kind: bytes changed, cut, repeated, lengths set to huge values.
//! `SLOWSTART_CASES` sets the number of cases for each file (default 64; thousands take minutes).

use crate::common;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use slowstart_replay::analysis::Keep;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open::{self, Kind};
use slowstart_replay::replay::{Options, Report, read};
use slowstart_replay::{qlog, wire};
use std::io::Cursor;
use std::io::Write as _;

fn options() -> Options {
    let all = slowstart::startup::REGISTRY.iter();
    let candidates = all.map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
    Options {
        candidates,
        keep: Keep { snapshots: true, packets: true, fork_states: false },
        ..Options::default()
    }
}

fn replay(bytes: Vec<u8>) -> Result<Report, String> {
    let (kind, input) = open::detect(Box::new(Cursor::new(bytes))).map_err(|e| e.to_string())?;
    read(kind, input, &options(), |_| {}).map_err(|e| e.to_string())
}

/// A valid file of each kind.
fn valid() -> Vec<(Kind, Vec<u8>)> {
    let run = common::run("rate=10Mbit rtt=20ms queue=20packets", "standard", Some("150kB"));
    let (mut pcapng, mut log) = (Vec::new(), Vec::new());
    wire::write(&mut pcapng, &run.trace.packets, 1).expect("a Vec takes everything");
    qlog::write(&mut log, "t", &run.trace.samples, &run.trace.events).expect("a Vec takes everything");
    let row = serde_json::to_vec(&run.row).expect("a row");
    let kernlog = "now_us,bytes_acked,mss,rtt_us,tp_deliver_rate,tp_interval,tp_delivered,lost_pkt,\
                   total_retrans_pkt,app_limited,snd_nxt,sk_pacing_rate,snd_una\n\
                   0,1400,1400,50000,0,0,2,0,0,1,15400,38472,2800\n\
                   900,2800,1400,51000,1,5,3,1,1,1,18200,42049,4200\n";
    let quic = r#"{"qlog_version":"0.3","traces":[{"vantage_point":{"type":"server"},"events":[
        {"time":0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":1200}}},
        {"time":1,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":1},"raw":{"length":1200}}},
        {"time":50,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":0},"frames":[{"frame_type":"ack","acked_ranges":[[0,1]]}]}},
        {"time":60,"name":"recovery:packet_lost","data":{"header":{"packet_number":1}}}]}]}"#;
    let ndt7 = r#"{"Download":{"ServerMeasurements":[
        {"TCPInfo":{"ElapsedTime":100000,"SndCwnd":10,"SndSsThresh":2147483647,"SndMSS":1400,"RTT":40000,"MinRTT":39000,"BytesAcked":1000,"TotalRetrans":0}},
        {"TCPInfo":{"ElapsedTime":300000,"SndCwnd":40,"SndSsThresh":35,"SndMSS":1400,"RTT":41000,"MinRTT":39000,"BytesAcked":90000,"TotalRetrans":2}}]}}"#;
    let info = ndt7
        .replace("{\"Download\":{\"ServerMeasurements\":", "{\"UUID\":\"a\",\"Snapshots\":")
        .replace("]}}", "]}");
    let alone = "{\"Timestamp\":\"2024-05-01T12:00:00.5Z\",\"TCPInfo\":{\"SndCwnd\":10,\"RTT\":\"40000\"}}\n\
                 {\"Timestamp\":\"2024-05-01T12:00:01.5Z\",\"TCPInfo\":{\"SndCwnd\":20,\"SndSsThresh\":15}}\n";
    let iperf = r#"{"start":{"version":"iperf 3.12","tcp_mss_default":1448,"connected":[{"socket":5,"local_host":"a","local_port":1}]},
        "intervals":[{"streams":[{"socket":5,"end":0.1,"bytes":1000,"retransmits":0,"snd_cwnd":14480,"rtt":40000}]},
        {"streams":[{"socket":5,"end":0.2,"bytes":9000,"retransmits":2,"snd_cwnd":28960,"rtt":41000}]}]}"#;
    let module = "1.5 10.0.0.1:1 10.0.0.2:2 32 0x20 0x10 10 2147483647 65535 40 64240\n\
                  1.6 10.0.0.1:1 10.0.0.2:2 32 0x90 0x90 12 9 65535 41 64240\n";
    let stamped = "Nov 22 21:16:21.5 ESTAB 0 0 10.0.0.1:443 10.0.0.2:5000\n\
                   Nov 22 21:16:21.5 \t cubic rtt:40/2 mss:1448 cwnd:10 retrans:0/1\n\
                   Every 0.1s: ss -tin  h: Sun Nov 22 09:16:22.5 PM CET 2026\n\
                   ESTAB 0 0 10.0.0.1:443 10.0.0.2:5000\n cubic rtt:41/2 mss:1448 cwnd:30 ssthresh:20 retrans:0/2\n";
    let flent = r#"{"metadata":{"FLENT_VERSION":"2"},"raw_values":{"TCP upload":[{"t":1.0,"tcp_cwnd":10,"tcp_rtt":20.5},{"t":1.2,"tcp_cwnd":30}]}}"#;
    let ss = "1.5\nESTAB 0 0 10.0.0.1:443 10.0.0.2:5000\n\t cubic rtt:40/2 mss:1448 cwnd:10 retrans:0/1\n\
              1.7\nESTAB 0 0 10.0.0.1:443 10.0.0.2:5000\n\t cubic rtt:41/2 mss:1448 cwnd:30 ssthresh:20 retrans:0/2\n";
    let probe = "x 1 [0] 1.5: tcp_probe: src=10.0.0.1:1 dest=10.0.0.2:2 snd_una=0x10 snd_cwnd=10 ssthresh=9 srtt=50\n\
                 x 1 [0] 1.6: tcp_probe: src=10.0.0.1:1 dest=10.0.0.2:2 snd_una=0x90 snd_cwnd=12 ssthresh=9 srtt=50\n";
    let events = "{\"sk\":1,\"now_ns\":1000,\"kind\":\"begin\",\"acked_bytes\":0,\"next\":0,\"mss\":1448,\"cwnd\":10}\n\
                  {\"sk\":1,\"now_ns\":51000,\"kind\":\"ack\",\"acked_bytes\":1448,\"next\":15928,\"mss\":1448,\"cwnd\":10,\
                  \"rtt_us\":50000}\n\
                  {\"sk\":1,\"now_ns\":91000,\"kind\":\"loss\",\"acked_bytes\":1448,\"next\":15928,\"mss\":1448,\"cwnd\":11,\
                  \"why\":\"loss\"}\n";
    // The same as a sequence (RFC 7464), and compressed files.
    let seq = "\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"vantage_point\":{\"type\":\"server\"}}}\n\
        \u{1e}{\"time\":0,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":0},\"raw\":{\"length\":1200}}}\n\
        \u{1e}{\"time\":3,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":2},\"raw\":{\"length\":1200}}}\n\
        \u{1e}{\"time\":50,\"name\":\"transport:packet_received\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":0},\"frames\":[{\"frame_type\":\"ack\",\"ack_delay\":3.5,\"acked_ranges\":[[0,0],[2]]}]}}\n\
        \u{1e}{\"time\":55,\"name\":\"recovery:metrics_updated\",\"data\":{\"congestion_window\":14720,\"ssthresh\":9000}}\n";
    let netlog = r#"{"constants":{"logEventTypes":{"QUIC_SESSION_PACKET_SENT":2,"QUIC_SESSION_STREAM_FRAME_SENT":3,
        "QUIC_SESSION_ACK_FRAME_RECEIVED":5,"QUIC_SESSION_PACKET_LOST":6}},"events":[
        {"params":{"length":1200},"source":{"id":9},"time":"1000","type":3},
        {"params":{"packet_number":1,"size":1250,"encryption_level":"ENCRYPTION_FORWARD_SECURE"},"source":{"id":9},"time":"1000","type":2},
        {"params":{"length":1200},"source":{"id":9},"time":"1001","type":3},
        {"params":{"packet_number":"2","size":"1250"},"source":{"id":9},"time":"1001","type":2},
        {"params":{"largest_observed":2,"smallest_observed":1,"missing_packets":["1"]},"source":{"id":9},"time":"1050","type":5},
        {"params":{"packet_number":1},"source":{"id":9},"time":"1051","type":6}]}"#;
    let iperf2 = "Client connecting to 10.0.0.2, TCP port 5001\n[  1] local 10.0.0.1 port 5 connected with 10.0.0.2 port 5001 \
                  (icwnd/mss/irtt=14/1448/50012)\n[ ID] Interval Transfer Bandwidth Write/Err Rtry Cwnd/RTT(var) NetPwr\n\
                  [  1] 0.00-0.10 sec  42.0 KBytes  3.4 Mbits/sec  9/0  0  56K/50012(500) us  60\n\
                  [  1] 0.10-0.20 sec  169 KBytes  13.8 Mbits/sec  9/0  3  9K(7)/226K(9)/50012(500) us  60\n";
    let counted = "# 1.5\ntcp ESTAB 0 0 10.0.0.1:https 10.0.0.2:5000\n\t ts sack cubic wscale:7,7 rto:204 rtt:40/2 mss:1448 cwnd:10 \
                   bytes_acked:9 delivery_rate 3.2Mbps busy:99ms rwnd_limited:50ms(50.0%) sndbuf_limited:1ms(1%)\n\
                   time:1700000000\n0 0 [::1]:443 [::1]:5000 ts bbr wscale:7,7 rto:204 rtt:41/2 mss:1448 cwnd:30 ssthresh:20 app_limited\n";
    let paths = r#"{"qlog_version":"0.3","traces":[{"events":[
        {"time":0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0,"path_id":0},"raw":{"length":1200}}},
        {"time":1,"path_id":1,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":1200}}},
        {"time":50,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT"},"frames":[{"frame_type":"path_ack","path_id":1,"acked_ranges":[[0,0]]}]}},
        {"time":60,"name":"transport:packets_acked","data":{"packet_numbers":[0]}}]}]}"#;
    let ip = common::frames(&run, 0);
    let few = &ip[..ip.len().min(40)];
    let pppoe = [&[0; 12][..], &[0x88, 0x64, 0x11, 0, 0, 1, 4, 0, 0, 0x21]].concat();
    let wireless =
        [&[0, 0, 9, 0, 0, 0, 0, 0, 7, 0x88, 3][..], &[0; 22 + 6 + 2], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]]
            .concat();
    let pktap = [&[12, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0][..]].concat();
    let nflog = [2, 0, 0, 1, 6, 0, 1, 0, 7, 7, 0, 0, 44, 0, 9, 0];
    // IPv4 and UDP around GENEVE with an option, and around GTP-U with an extension.
    let outer = |port: [u8; 2], header: &[u8]| {
        let udp = [&[0xc0, 0][..], &port, &[0; 4], header].concat();
        [&[0x45, 0, 4, 0, 0, 0, 0, 0, 64, 17, 0, 0, 172, 16, 0, 1, 172, 16, 0, 2][..], &udp].concat()
    };
    let geneve = outer([0x17, 0xc1], &[1, 0, 8, 0, 0, 0, 1, 0, 7, 7, 7, 7]);
    let gtp = outer([8, 104], &[0x36, 255, 4, 28, 0, 0, 0, 7, 0, 9, 0, 0x85, 1, 0, 9, 0]);
    let tagged = [&[0; 12][..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 0x86, 0xdd]].concat();
    let six = common::under(&common::six(&ip), &tagged);
    let cooked = common::under(&ip, &[&[8, 0][..], &[0; 18]].concat());
    vec![
        (Kind::Capture, pcapng),
        (Kind::Qlog, log),
        (Kind::Rows, row),
        (Kind::KernelLog, kernlog.into()),
        (Kind::Qlog, quic.into()),
        (Kind::Mlab, ndt7.into()),
        (Kind::Mlab, info.into()),
        (Kind::Mlab, alone.into()),
        (Kind::Iperf, iperf.into()),
        (Kind::TcpProbe, module.into()),
        (Kind::Ss, stamped.into()),
        (Kind::Flent, flent.into()),
        (Kind::Ss, ss.into()),
        (Kind::TcpProbe, probe.into()),
        (Kind::Events, events.into()),
        (Kind::Netlog, netlog.into()),
        (Kind::IperfText, iperf2.into()),
        (Kind::Ss, counted.into()),
        (Kind::Qlog, paths.into()),
        (Kind::Capture, common::pcap(&common::under(few, &pppoe), 1, false, true, 200)),
        (Kind::Capture, common::pcap(&common::under(few, &wireless), 127, false, true, 200)),
        (Kind::Capture, common::pcap(&common::under(few, &pktap), 149, false, true, 200)),
        (Kind::Capture, common::pcap(&common::under(few, &nflog), 239, false, true, 200)),
        (Kind::Capture, common::pcap(&common::under(few, &geneve), 101, false, true, 200)),
        (Kind::Capture, common::pcap(&common::under(few, &gtp), 101, false, true, 200)),
        (Kind::Qlog, seq.into()),
        (Kind::Qlog, gzip(quic.as_bytes())),
        (Kind::KernelLog, zstd(kernlog.as_bytes())),
        (Kind::Capture, zstd(&classic())),
        (Kind::Capture, classic()),
        (Kind::Capture, common::pcap(&six[..six.len().min(40)], 1, true, true, 200)),
        (Kind::Capture, common::pcapng(&cooked[..cooked.len().min(40)], 276, true, 6, false)),
    ]
}

/// Compresses with gzip, in two members.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in bytes.chunks(bytes.len() / 2 + 1) {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        e.write_all(part).expect("a Vec takes everything");
        out.extend(e.finish().expect("a Vec takes everything"));
    }
    out
}

/// Compresses with zstd.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// A classic pcap of three Ethernet frames.
fn classic() -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        out.extend(word.to_le_bytes());
    }
    for (i, flags) in [2_u8, 0x10, 0x18].iter().enumerate() {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 5, 0xdc, 0, i as u8, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x1f, 0x90, 0xc3, 0x50, 0, 0, 0, i as u8, 0, 0, 0, 0, 0x50, *flags, 1, 0, 0, 0, 0, 0]);
        for word in [i as u32, 7, frame.len() as u32, 1514] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    out
}

#[test]
fn valid_files_are_read() {
    for (kind, bytes) in valid() {
        let report = replay(bytes).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        assert_eq!((report.summary.kind, report.summary.incomplete.is_none()), (kind, true));
        assert!(!report.transfers.is_empty(), "{kind:?}");
    }
}

#[test]
fn no_damaged_file_causes_a_panic() {
    let cases = std::env::var("SLOWSTART_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    for (kind, bytes) in valid() {
        let n = bytes.len();
        let change = (0..n, prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(b'9'), Just(b'-')]);
        let damage = (
            prop::collection::vec(change, 0..12),
            prop::option::of(0..n),
            prop::option::of((0..n, 1..200_usize)),
            prop::option::of(0..n.saturating_sub(4).max(1)),
        );
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let done = runner.run(&damage, |(changes, cut, repeat, huge)| {
            let mut b = bytes.clone();
            for (at, byte) in changes {
                b[at] = byte;
            }
            if let Some(at) = huge.filter(|at| at + 4 <= b.len()) {
                b[at..at + 4].fill(0xff);
            }
            if let Some((at, len)) = repeat {
                let part = b[at..(at + len).min(b.len())].to_vec();
                b.extend(part);
            }
            b.truncate(cut.unwrap_or(b.len()));
            if let Err(why) = replay(b) {
                prop_assert!(!why.is_empty());
            }
            Ok(())
        });
        done.unwrap_or_else(|e| panic!("{kind:?}: {e}"));
    }
}

#[test]
fn errors_name_the_location() {
    let refuses = |bytes: &[u8], says: &str| {
        let e = replay(bytes.to_vec()).expect_err("refused");
        assert!(e.contains(says), "{e:?} does not say {says:?}");
    };
    refuses(b"", "offset 0: found nothing");
    refuses(&[0x55; 5000], "offset 0: found an unknown format");
    refuses(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3], "offset 0: ");
    refuses(&[0x1f, 0x8b, 8, 0, 0], "offset 0: ");
    // A header, then a packet whose length is 4 GB.
    let mut huge = classic()[..24].to_vec();
    huge.extend([0xff; 16]);
    huge.extend([0; 5000]);
    refuses(&huge, "offset 24: ");
    refuses(&classic()[..30], "offset 24: the file ends in the middle of a packet");
}

/// Found by damaging files: a time near the end of 64 bits kept a startup that counts intervals in a loop.
#[test]
fn a_damaged_time_ends_the_connection() {
    let mut ip =
        common::frames(&common::run("rate=10Mbit rtt=20ms queue=20packets", "standard", Some("150kB")), 1);
    for f in &mut ip[40..] {
        f.ns = u64::MAX - 1;
    }
    let report = replay(common::pcapng(&ip, 101, false, 9, false)).expect("valid until then");
    let t = report.transfers.iter().max_by_key(|t| t.row.bytes).expect("a download");
    assert!(
        t.row.bytes > Some(0) && t.row.caveats.iter().any(|c| c.contains("damaged")),
        "{:?}",
        t.row.caveats
    );
}

/// Rows are given for what is before the damage, and the report says that they are not all.
#[test]
fn a_cut_capture_gives_the_rows_before_the_cut() {
    let (_, bytes) = valid().remove(0);
    let whole = replay(bytes.clone()).expect("valid");
    let part = replay(bytes[..bytes.len() * 2 / 3].to_vec()).expect("a part");
    assert!(part.summary.incomplete.as_ref().is_some_and(|c| c.to_string().starts_with("offset ")));
    let most = |r: &Report| r.transfers.iter().map(|t| t.row.bytes).max();
    assert!(most(&part) < most(&whole) && most(&part) > Some(Some(0)));
}

/// A compressed file, by gzip in one or several members or by zstd, gives the same rows.
#[test]
fn compressed_files_give_the_same_rows() {
    let (_, bytes) = valid().remove(0);
    let rows =
        |b: Vec<u8>| replay(b).expect("valid").transfers.into_iter().map(|t| t.row).collect::<Vec<_>>();
    let plain = rows(bytes.clone());
    assert_eq!(rows(gzip(&bytes)), plain);
    assert_eq!(rows(zstd(&bytes)), plain);
}
