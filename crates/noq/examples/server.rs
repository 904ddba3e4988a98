//! Sends bytes over QUIC (noq) on a real socket, with a startup of the registry.
//!
//! `server --cert FILE [--startup search] [--size 20000000] [--listen 0.0.0.0:4433]` writes its certificate
//! to FILE, sends one stream to each client, and prints a JSON line when the client has closed the
//! connection: when the startup saw its reason to exit, in seconds since the connection began, and the window
//! then. See docs/evidence/quic.md.

use noq::rustls::pki_types::PrivateKeyDer;
use noq::{Endpoint, ServerConfig, TransportConfig, VarInt};
use slowstart_noq::Noq;
use slowstart_quic::factory::Factory;
use std::error::Error;
use std::sync::Arc;

/// The value of an option, or its default.
fn option(name: &str, default: &str) -> String {
    let args: Vec<String> = std::env::args().collect();
    let given = args.windows(2).find(|w| w[0] == name).map(|w| w[1].clone());
    given.unwrap_or_else(|| default.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let startup = option("--startup", "search");
    let size: u64 = option("--size", "20000000").parse()?;
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
    let cert = rcgen::CertificateParams::new(vec!["localhost".to_string()])?.self_signed(&key)?;
    std::fs::write(option("--cert", "cert.der"), cert.der())?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut config = ServerConfig::with_single_cert(vec![cert.der().clone()], key)?;

    let factory = Arc::new(Factory::named(&startup).ok_or("--startup: not in the registry")?.watched());
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(Noq::new(factory.clone())))
        .mtu_discovery_config(None)
        .send_window(1 << 30)
        .stream_receive_window(VarInt::from_u32(1 << 30));
    config.transport_config(Arc::new(transport));

    let endpoint = Endpoint::server(config, option("--listen", "0.0.0.0:4433").parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        let handle = factory.newest().ok_or("a connection without a controller")?;
        let mut stream = connection.open_uni().await?;
        let chunk = vec![0; 1 << 16];
        let mut left = size;
        while left > 0 {
            let most = left.min(chunk.len() as u64) as usize;
            stream.write_all(&chunk[..most]).await?;
            left -= most as u64;
        }
        stream.finish()?;
        connection.closed().await;
        let host = handle.lock();
        let exit = host.exit.map_or_else(
            || "null".to_string(),
            |e| {
                let time_s = e.detected_at.since(slowstart::units::Instant::ZERO).as_secs_f64();
                let (reason, cwnd) = (e.why.name(), e.detected_cwnd.0);
                format!(r#"{{"reason":"{reason}","time_s":{time_s:.3},"cwnd_bytes":{cwnd}}}"#)
            },
        );
        let (lost, packets) = (host.counters.lost_packets, host.counters.packets);
        println!(r#"{{"startup":"{startup}","exit":{exit},"packets":{packets},"lost_packets":{lost}}}"#);
    }
    Ok(())
}
