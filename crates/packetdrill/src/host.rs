//! The simulated host of a script: its sysctls, and the commands that set them.

use slowstart::avoidance;
use slowstart::control::{Checked, Composed};
use slowstart::registry::AnyController;
use slowstart::units::Bytes;
use slowstart_sim::engine::Control;
use slowstart_sim::tcp::ecn::EcnRule;
use slowstart_sim::tcp::endpoint::Endpoint;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::scenario;

use crate::queue::Queue;

/// The simulated host of a script: its sysctls.
#[derive(Clone, Debug)]
pub struct Host {
    /// The TCP stack with the knobs that sysctls of the script set.
    pub profile: Profile,
    startup: &'static str,
    avoidance: &'static str,
    /// The rule of a client; a server has that of the profile.
    client_ecn: EcnRule,
    /// The socket is writable while fewer unsent bytes than this are queued (`tcp_notsent_lowat`).
    pub notsent_lowat: u64,
    /// The first send buffer and the largest, bytes (`tcp_wmem`).
    wmem: (u64, u64),
    /// The queue of the interface is full.
    pub blocked: bool,
}

impl Default for Host {
    fn default() -> Self {
        // pfifo does not pace. tcp_ecn_option is 2.
        let profile = Profile { ecn_option: true, ..Profile::LINUX_6_18 };
        Self {
            profile,
            startup: "hystart",
            avoidance: "cubic",
            client_ecn: EcnRule::Off,
            notsent_lowat: u64::from(u32::MAX),
            wmem: (256 << 10, 4 << 20),
            blocked: false,
        }
    }
}

impl Host {
    /// Runs the shell commands that set modelled sysctls and interface properties.
    ///
    /// # Errors
    /// The first command that does anything else.
    pub fn shell(&mut self, text: &str) -> Result<(), String> {
        for line in text.replace("\\\n", " ").lines() {
            let line = line.split('#').next().unwrap_or(line).trim();
            let mut words = line.split_whitespace();
            match words.next() {
                None => {}
                // The test suites of packetdrill and of the kernel run this command before every script.
                Some(c) if c.ends_with("/defaults.sh") => {
                    *self = Self::default();
                    self.profile.idle_restart = false;
                    self.profile.syn_retries = 5;
                    self.profile.rmem = Bytes(15 << 20);
                }
                // Restores the settings after a script. Here each script starts with a new host.
                Some(c) if c.starts_with("/tmp/sysctl_restore_") => {}
                Some("sysctl") => self.settings(line.trim_start_matches("sysctl"))?,
                Some(c) if c.ends_with("set_sysctls.py") => self.settings(line.trim_start_matches(c))?,
                // Segmentation offload is not modelled.
                Some("ethtool") if line.ends_with("tso off gso off") => {}
                Some("tc") if line.ends_with("root pfifo limit 0") => self.blocked = true,
                Some("tc") if line.ends_with("root fq") => self.profile.pacing = true,
                Some("tc") if line.ends_with("root pfifo") => self.profile.pacing = false,
                Some("echo") if line.ends_with("/sys/module/tcp_cubic/parameters/hystart_detect") => {
                    self.startup = match words.next() {
                        Some("0") => "standard",
                        Some("3") => "hystart",
                        _ => return Err(format!("unsupported: `{line}`")),
                    };
                }
                Some(_) => return Err(format!("unsupported: `{line}`")),
            }
        }
        Ok(())
    }

    /// `key=value` words; a quoted value may hold spaces.
    fn settings(&mut self, text: &str) -> Result<(), String> {
        let mut quoted = false;
        let mut words = vec![String::new()];
        for c in text.chars() {
            match c {
                '"' => quoted = !quoted,
                c if c.is_whitespace() && !quoted => words.push(String::new()),
                c => words.last_mut().into_iter().for_each(|w| w.push(c)),
            }
        }
        for word in words.iter().filter(|w| !w.is_empty() && !w.starts_with('-')) {
            let (key, value) = word.split_once('=').ok_or_else(|| format!("unsupported: `{word}`"))?;
            let key = key.rsplit(['.', '/']).next().unwrap_or(key);
            self.set(key, value).ok_or_else(|| format!("unsupported: sysctl {key}={value}"))?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let flag = || match value {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        let last = || value.split_whitespace().nth(2)?.parse().ok();
        let p = &mut self.profile;
        match key {
            "tcp_slow_start_after_idle" => p.idle_restart = flag()?,
            "tcp_timestamps" => {
                p.timestamps = flag()?;
                p.mss = if p.timestamps { 1448 } else { 1460 };
            }
            "tcp_sack" => p.sack = flag()?,
            "tcp_recovery" => p.rack = flag()?,
            "tcp_early_retrans" => p.tlp = value != "0",
            "tcp_rmem" => {
                let sane = |n: &u64| (4096..1 << 30).contains(n);
                let first = value.split_whitespace().nth(1)?.parse().ok();
                p.rmem_first = Bytes(first.filter(sane)?);
                p.rmem = Bytes(last().filter(sane)?);
            }
            "tcp_wmem" => {
                let first = value.split_whitespace().nth(1)?.parse().ok();
                let sane = |n: &u64| (4096..=1 << 26).contains(n);
                self.wmem = (first.filter(sane)?, last().filter(sane)?);
            }
            "tcp_syn_retries" => p.syn_retries = value.parse().ok()?,
            "tcp_synack_retries" => p.synack_retries = value.parse().ok()?,
            "tcp_syn_linear_timeouts" => p.syn_linear = value.parse().ok()?,
            "tcp_notsent_lowat" => self.notsent_lowat = value.parse().ok()?,
            "tcp_congestion_control" => match value {
                "cubic" => self.avoidance = "cubic",
                "reno" => (self.startup, self.avoidance) = ("standard", "reno"),
                _ => return None,
            },
            // How a burst is cut into packets is not modelled.
            "tcp_tso_win_divisor" | "tcp_min_tso_segs" => {}
            // Modelled, and always on.
            "tcp_pacing_ss_ratio" => return (value == "200").then_some(()),
            "tcp_pacing_ca_ratio" => return (value == "120").then_some(()),
            "tcp_ecn" => {
                // What a client asks for, and what a server agrees to.
                (self.client_ecn, p.ecn) = match value {
                    "0" => (EcnRule::Off, EcnRule::Off),
                    "1" => (EcnRule::Rfc3168, EcnRule::Rfc3168),
                    "2" => (EcnRule::Passive, EcnRule::Passive),
                    "3" => (EcnRule::AccEcn, EcnRule::AccEcn),
                    "4" => (EcnRule::Rfc3168, EcnRule::AccEcn),
                    "5" => (EcnRule::Passive, EcnRule::AccEcn),
                    _ => return None,
                }
            }
            // A setting of routes, and how often the option is sent at least: in each segment here.
            "tcp_ecn_fallback" => return (value == "0" || value == "1").then_some(()),
            "tcp_ecn_option_beacon" => return value.parse::<u8>().is_ok().then_some(()),
            // Never, or in each segment.
            "tcp_ecn_option" => match value {
                "0" => p.ecn_option = false,
                "2" => p.ecn_option = true,
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    /// A send buffer with this host's limits.
    pub fn buffer(&self) -> Queue {
        Queue::new(self.wmem.0, self.wmem.1)
    }

    /// A TCP endpoint on this host that will connect.
    pub fn client(&self) -> Endpoint<Control> {
        self.endpoint(&Profile { ecn: self.client_ecn, ..self.profile })
    }

    /// A TCP endpoint on this host that listens.
    pub fn server(&self) -> Endpoint<Control> {
        self.endpoint(&self.profile).into_listening()
    }

    fn endpoint(&self, p: &Profile) -> Endpoint<Control> {
        let startup = scenario::startup("startup", self.startup).map(|s| s.1);
        let startup = startup.unwrap_or_else(|e| unreachable!("{} is registered: {e}", self.startup));
        let avoidance = avoidance::REGISTRY.iter().find(|a| a.name == self.avoidance);
        let avoidance =
            avoidance.map_or_else(|| unreachable!("{} is registered", self.avoidance), |a| (a.make)());
        let iw = Bytes(u64::from(p.iw) * u64::from(p.mss));
        let control = AnyController::Composed(Composed::new(startup, avoidance, iw));
        Endpoint::connecting(p, Checked::new(control), 0)
    }
}
