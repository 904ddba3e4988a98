//! Two ends of `noq-proto`.

use super::log::Logs;
use super::null::NoEncryption;
use super::{CLIENT, Knobs, QuicError, SERVER, Stack, address, certificate, end_seed, stack};
use bytes::{Bytes as Buffer, BytesMut};
use noq_proto::crypto::{self, rustls::QuicClientConfig};
use noq_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, FourTuple, MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId,
    TransportConfig, VarInt,
};
use slowstart_quic::factory::Factory;
use slowstart_sim::path::Ecn;
use slowstart_sim::tcp::ranges::Ranges;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant as StdInstant;

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
}

/// The ends.
pub(super) struct Noq {
    ends: [End; 2],
    /// Where the server sees the client.
    client: SocketAddr,
}

fn end(i: usize, seed: u64, server: Option<ServerConfig>, knobs: &Knobs) -> End {
    let mut config = EndpointConfig::default();
    config.rng_seed(Some(end_seed(i, seed)));
    let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), knobs.discovers_mtu);
    End { endpoint, connection: None, stream: None }
}

/// Segmentation offload is off. By default, so is MTU discovery, and flow control has no effect.
fn transport(knobs: &Knobs, factory: Option<Arc<Factory>>, logs: Option<&Logs>) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    if let Some(logs) = logs {
        config.qlog_factory(Arc::new(logs.clone()));
    }
    if let Some(factory) = factory {
        config.congestion_controller_factory(Arc::new(slowstart_noq::Noq::new(factory)));
    }
    config
        .mtu_discovery_config(knobs.discovers_mtu.then(MtuDiscoveryConfig::default))
        .enable_segmentation_offload(false)
        .max_idle_timeout(None)
        .initial_mtu(knobs.mtu)
        .send_window(u64::from(knobs.window))
        .stream_receive_window(VarInt::from_u32(knobs.window))
        .receive_window(VarInt::from_u32(knobs.window));
    if let Some(unacknowledged) = knobs.acks.checked_sub(1) {
        let mut acks = AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(VarInt::from_u32(unacknowledged));
        config.ack_frequency_config(Some(acks));
    }
    Arc::new(config)
}

impl Noq {
    fn connection(&mut self, i: usize) -> Option<&mut Connection> {
        self.ends[i].connection.as_mut().map(|(_, c)| c)
    }
}

impl Stack for Noq {
    const NAME: &'static str = "noq-proto 1.4.0";
    const CAVEAT: Option<&'static str> = None;

    fn new(
        knobs: &Knobs,
        factory: Arc<Factory>,
        origin: StdInstant,
        seed: u64,
        logs: Option<Logs>,
    ) -> Result<Self, QuicError> {
        let (cert, key) = certificate()?;
        let mut server =
            ServerConfig::with_single_cert(vec![cert.clone()], key.clone_key()).map_err(stack)?;
        if !knobs.encrypts {
            server.crypto = Arc::new(NoEncryption(server.crypto));
        }
        server.transport_config(transport(knobs, Some(factory), logs.as_ref()));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(cert.clone()).map_err(stack)?;
        let mut client = if knobs.encrypts {
            ClientConfig::with_root_certificates(Arc::new(roots)).map_err(stack)?
        } else {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let tls = rustls::ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(stack)?
                .with_root_certificates(roots)
                .with_no_client_auth();
            let quic = QuicClientConfig::try_from(tls).map_err(stack)?;
            ClientConfig::new(Arc::new(NoEncryption(Arc::new(quic) as Arc<dyn crypto::ClientConfig>)))
        };
        client.transport_config(transport(knobs, None, logs.as_ref()));
        let mut ends = [end(CLIENT, seed, None, knobs), end(SERVER, seed, Some(server), knobs)];
        let connecting = ends[CLIENT].endpoint.connect(origin, client, address(SERVER), "localhost");
        ends[CLIENT].connection = Some(connecting.map_err(stack)?);
        Ok(Self { ends, client: address(CLIENT) })
    }

    fn receive(&mut self, i: usize, now: StdInstant, ecn: Ecn, datagram: BytesMut) -> Result<(), QuicError> {
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        let from = if i == SERVER { self.client } else { address(SERVER) };
        let end = &mut self.ends[i];
        let mut answer = Vec::new();
        match end.endpoint.handle(now, FourTuple::new(from, None), ecn, datagram, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut end.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = end.endpoint.accept(incoming, now, &mut answer, None);
                end.connection = Some(accepted.map_err(|e| stack(format!("{:?}", e.cause)))?);
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
        Ok(())
    }

    #[cfg(test)]
    fn move_client(&mut self, to: SocketAddr) {
        self.client = to;
    }

    fn timeout(&mut self, i: usize) -> Option<StdInstant> {
        self.connection(i)?.poll_timeout()
    }

    fn on_timeout(&mut self, i: usize, now: StdInstant) {
        if let Some(c) = self.connection(i) {
            c.handle_timeout(now);
        }
    }

    fn events(&mut self, i: usize) -> Result<(), QuicError> {
        let end = &mut self.ends[i];
        let Some((_, connection)) = &mut end.connection else { return Ok(()) };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if i == SERVER => end.stream = connection.streams().open(Dir::Uni),
                Event::Stream(StreamEvent::Opened { dir }) if i == CLIENT => {
                    end.stream = connection.streams().accept(dir).or(end.stream);
                }
                Event::ConnectionLost { reason, .. } => return Err(QuicError::Closed(reason.to_string())),
                _ => {}
            }
        }
        Ok(())
    }

    fn write(&mut self, data: &'static [u8]) -> usize {
        let end = &mut self.ends[SERVER];
        let (Some((_, connection)), Some(stream)) = (&mut end.connection, end.stream) else { return 0 };
        let mut chunks = [Buffer::from_static(data)];
        connection.send_stream(stream).write_chunks(&mut chunks.as_mut_slice()).unwrap_or(0)
    }

    fn read(&mut self, mut pieces: Option<&mut Ranges>) -> u64 {
        let end = &mut self.ends[CLIENT];
        let (Some((_, connection)), Some(stream)) = (&mut end.connection, end.stream) else { return 0 };
        let mut received = 0;
        if let Ok(mut chunks) = connection.recv_stream(stream).read(pieces.is_none()) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                let bytes = chunk.bytes.len() as u64;
                received += bytes;
                if let Some(pieces) = pieces.as_deref_mut().filter(|_| bytes > 0) {
                    pieces.add(chunk.offset, chunk.offset + bytes, |_, _| {});
                }
            }
            let _ = chunks.finalize();
        }
        received
    }

    fn settle(&mut self, i: usize) {
        let end = &mut self.ends[i];
        let Some((handle, connection)) = &mut end.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = end.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    fn transmit(&mut self, i: usize, now: StdInstant, buffer: &mut Vec<u8>) -> Option<(usize, Ecn)> {
        let transmit = self.connection(i)?.poll_transmit(now, NonZeroUsize::MIN, buffer)?;
        Some((transmit.size, transmit.ecn.map_or(Ecn::NotEct, |e| Ecn::from_bits(e as u8))))
    }
}
