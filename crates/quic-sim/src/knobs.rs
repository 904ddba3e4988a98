//! Settings of a stack in a simulation, as `key=value` after its name: `noq,crypto=null,ecn=on`.

use super::{QuicError, Which};
use slowstart_quic::host::Limited;
use std::fmt::Write as _;

/// Settings of both ends. The default lets congestion control decide: packets of 1200 bytes, and flow control
/// without effect.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Encrypt packets. If false, the handshake is that of TLS 1.3, and packets after it are as long as
    /// encrypted ones and in clear (noq).
    pub encrypts: bool,
    /// Send ECT(0), and let the receiver report marks (RFC 9000 §13.4).
    pub ecn: bool,
    /// The largest UDP payload, in bytes: 1200 to 65,527. With discovery, it is that of the first packets.
    pub mtu: u16,
    /// Look for a larger payload with probes, as the stack does by default (RFC 8899; both stacks try up to
    /// 1452 bytes).
    pub discovers_mtu: bool,
    /// The receiver acknowledges each this many packets, at once; 0 leaves it to the stack (every second
    /// packet).
    pub acks: u32,
    /// The pacing rate in slow start, in percent of a window a smoothed round trip (noq): 200, or 1 to
    /// 10,000.
    pub gain: u32,
    /// Which sender counts as limited by its application.
    pub limited: Limited,
    /// Flow-control limits of stream and connection, and the send buffer, in bytes.
    pub window: u32,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            encrypts: true,
            ecn: false,
            mtu: 1200,
            discovers_mtu: false,
            acks: 0,
            gain: 200,
            limited: Limited::Stack,
            window: 1 << 30,
        }
    }
}

/// What each key expects.
const EXPECTED: &str = "crypto=tls or null, ecn=on or off, mtu=1200 to 65527 or discover, acks=N, gain=PERCENT, limited=stack, neqo or draft, window=BYTES";

impl Knobs {
    /// Reads a stack with its settings, such as `quinn` or `noq,ecn=on`; without a name, quinn.
    pub fn parse(text: &str) -> Result<(Which, Self), QuicError> {
        let (name, settings) = text.split_once(',').unwrap_or((text, ""));
        let which =
            Which::ALL.into_iter().find(|w| w.key() == name).or_else(|| name.is_empty().then(Which::default));
        let which = which.ok_or_else(|| QuicError::Unsupported {
            key: "engine",
            why: format!("found the stack {name:?}, expected quinn or noq"),
        })?;
        Ok((which, Self::read(which, settings)?))
    }

    /// Reads the settings of a stack, such as `ecn=on,mtu=1472`, or none.
    pub fn read(which: Which, settings: &str) -> Result<Self, QuicError> {
        let wrong = |why: String| QuicError::Unsupported { key: "engine", why };
        let mut knobs = Self::default();
        for part in settings.split(',').filter(|p| !p.is_empty()) {
            let known = part.split_once('=').and_then(|(key, value)| knobs.set(key, value));
            known.ok_or_else(|| wrong(format!("found {part:?}, expected {EXPECTED}")))?;
        }
        if which == Which::Quinn && !knobs.encrypts {
            return Err(wrong("crypto=null is written for quic:noq only".to_string()));
        }
        Ok(knobs)
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        match (key, value) {
            ("crypto", "tls") => self.encrypts = true,
            ("crypto", "null") => self.encrypts = false,
            ("ecn", "on") => self.ecn = true,
            ("ecn", "off") => self.ecn = false,
            ("mtu", "discover") => (self.mtu, self.discovers_mtu) = (1200, true),
            ("mtu", _) => {
                self.mtu = value.parse().ok().filter(|n| (1200..=65_527).contains(n))?;
                self.discovers_mtu = false;
            }
            ("acks", _) => self.acks = value.parse().ok().filter(|n| *n < 1000)?,
            ("gain", _) => self.gain = value.parse().ok().filter(|n| (1..=10_000).contains(n))?,
            ("limited", "stack") => self.limited = Limited::Stack,
            ("limited", "neqo") => self.limited = Limited::Neqo,
            ("limited", "draft") => self.limited = Limited::Draft,
            ("window", _) => self.window = value.parse().ok().filter(|n| (1..=1 << 30).contains(n))?,
            _ => return None,
        }
        Some(())
    }

    /// The settings that differ from the default, as they are written.
    pub fn label(&self) -> String {
        let (mut text, default) = (String::new(), Self::default());
        let mut add = |differs: bool, what: &str| {
            if differs {
                let _ = write!(text, ",{what}");
            }
        };
        add(self.encrypts != default.encrypts, "crypto=null");
        add(self.ecn != default.ecn, "ecn=on");
        add(self.mtu != default.mtu, &format!("mtu={}", self.mtu));
        add(self.discovers_mtu, "mtu=discover");
        add(self.acks != default.acks, &format!("acks={}", self.acks));
        add(self.gain != default.gain, &format!("gain={}", self.gain));
        add(self.limited == Limited::Neqo, "limited=neqo");
        add(self.limited == Limited::Draft, "limited=draft");
        add(self.window != default.window, &format!("window={}", self.window));
        text
    }
}
