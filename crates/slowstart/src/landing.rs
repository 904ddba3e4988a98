//! What a connection leaves slow start with: the window after an exit by a rule, apart from when that is.
//!
//! A startup has a landing of its own (most keep the window at which they found the path full). Where another
//! one is asked for, [`Composed`](crate::control::Composed) applies it, at the exit and only if a rule and
//! not congestion ended the startup. It never raises the window.

use crate::param::{ParamValue, Value};
use crate::round::Round;
use crate::units::{Bytes, Fixed};
use crate::view::{Ack, Facts};

/// The window after an exit by a rule.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// As the startup says.
    #[default]
    Own,
    /// This share of the window at which the path was found full.
    Share(Fixed),
    /// What was delivered in the last round trip that is complete.
    Delivered,
}

impl Value for Window {
    fn read(text: &str) -> Option<Self> {
        match text {
            "own" => Some(Self::Own),
            "delivered" => Some(Self::Delivered),
            "detected" => Some(Self::Share(Fixed(Fixed::ONE))),
            share => Fixed::parse(share).filter(|s| 0 < s.0 && s.0 <= Fixed::ONE).map(Self::Share),
        }
    }
    fn show(self) -> ParamValue {
        match self {
            Self::Own => ParamValue::Word("own"),
            Self::Share(s) => ParamValue::Number(s.as_f64()),
            Self::Delivered => ParamValue::Word("delivered"),
        }
    }
}

crate::param::params! {
    /// What to leave with.
    pub struct Landing {
        /// The window after an exit by a rule.
        landing: Window = Window::Own, "one of own, detected, delivered, or a share such as 0.7", |_v| true;
        /// Tell the avoidance to look for the window at which the path was found full (`W_max` of CUBIC).
        plateau: bool = false, "on or off", |_v| true;
    }
}

/// Applies a landing.
#[derive(Clone, Debug)]
pub(crate) struct Lander {
    pub(crate) of: Landing,
    round: Round,
    /// Bytes delivered when the round began, and in the round before.
    began: Bytes,
    last: Option<Bytes>,
}

impl Lander {
    pub(crate) fn new(of: Landing) -> Self {
        Self { of, round: Round::default(), began: Bytes::ZERO, last: None }
    }

    pub(crate) fn observe(&mut self, f: &Facts, a: &Ack) {
        if self.round.ends_round(a.upto, f.next) {
            self.last = Some(f.delivered - self.began);
            self.began = f.delivered;
        }
    }

    /// Returns the window to leave with, if it is not the startup's own: at most `cwnd`, where `detected` was
    /// the window when the path was found full.
    pub(crate) fn window(&self, cwnd: Bytes, detected: Bytes) -> Option<Bytes> {
        let window = match self.of.landing {
            Window::Own => return None,
            Window::Share(s) => detected.scale(s.0.unsigned_abs(), Fixed::ONE.unsigned_abs()),
            Window::Delivered => self.last?,
        };
        Some(window.min(cwnd))
    }
}
