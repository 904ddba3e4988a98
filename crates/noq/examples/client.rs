//! Reads one stream over QUIC (noq) on a real socket, and prints how long it took as a JSON line.
//!
//! `client --cert FILE [--connect 10.77.0.1:4433]`, where FILE is the certificate that the server wrote. See
//! docs/evidence/quic.md.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

use noq::rustls::RootCertStore;
use noq::{ClientConfig, Endpoint, TransportConfig, VarInt};
use std::error::Error;
use std::sync::Arc;

fn option(name: &str, default: &str) -> String {
    let args: Vec<String> = std::env::args().collect();
    let given = args.windows(2).find(|w| w[0] == name).map(|w| w[1].clone());
    given.unwrap_or_else(|| default.to_string())
}

#[tokio::main(flavor = "current_thread")]
#[allow(clippy::disallowed_methods, reason = "it measures on the real clock")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(std::fs::read(option("--cert", "cert.der"))?.into())?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = TransportConfig::default();
    transport
        .mtu_discovery_config(None)
        .stream_receive_window(VarInt::from_u32(1 << 30))
        .receive_window(VarInt::from_u32(1 << 30));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    let begin = std::time::Instant::now();
    let server = option("--connect", "10.77.0.1:4433").parse()?;
    let connection = endpoint.connect_with(config, server, "localhost")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut buffer = vec![0; 1 << 18];
    let mut received = 0_u64;
    while let Some(n) = stream.read(&mut buffer).await? {
        received += n as u64;
    }
    let completion_s = begin.elapsed().as_secs_f64();
    println!(r#"{{"received_bytes":{received},"completion_s":{completion_s:.3}}}"#);
    connection.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    Ok(())
}
