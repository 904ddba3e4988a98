//! Elements after the link that a key of their own describes, for either direction.
//!
//! A new one is a file here, named after its key, and a line of [`elements!`]. Its key, that of the way back,
//! how values are read, its stream of random numbers and its place among the others follow.

use std::fmt::Debug;

use slowstart::units::Instant;

use super::delay::Delay;
use super::dropped::Dropped;
use super::error::PathError;
use super::fade::BurstLoss;
use super::link::Link;
use super::loss::LossOverTime;
use super::spec::{Keys, PathKey};
use super::{Buckets, Cause, PacketInfo};
use crate::random::Stream;

/// An element with a key of its own.
pub(super) trait Keyed: Sized {
    /// A value of its key, checked.
    type Params: Clone + Debug;
    /// What a value looks like.
    const EXPECTS: &'static str;
    /// What the key does, in a sentence.
    const ABOUT: &'static str;
    /// True if packets may overtake each other.
    const DISORDERS: bool = false;
    /// Reads a value; `None` if it is not valid.
    fn read(text: &str) -> Option<Self::Params>;
    /// False for a value that asks for no element, such as a share of 0.
    fn acts(_: &Self::Params) -> bool {
        true
    }
    /// An element to run, with random values from a stream.
    fn build(params: Self::Params, stream: Stream) -> Self;
    /// Returns when a packet that comes at `now` leaves, or its drop.
    fn pass(&mut self, now: Instant) -> Result<Instant, Dropped>;
}

/// Defines [`Elements`], [`Element`] and the keys for a list of modules, in the order in which packets pass them.
macro_rules! elements {
    ($($key:ident::$kind:ident;)+) => {
        $(mod $key;)+

        /// The keys of the way there.
        pub(super) const KEYS: &[PathKey] = &[$(PathKey {
            name: stringify!($key),
            expects: <$key::$kind as Keyed>::EXPECTS,
            about: <$key::$kind as Keyed>::ABOUT,
        }),+];

        /// The keys of the way back.
        pub(super) const BACK_KEYS: &[PathKey] = &[$(PathKey {
            name: concat!("ack_", stringify!($key)),
            expects: <$key::$kind as Keyed>::EXPECTS,
            about: concat!("As ", stringify!($key), ", for the way back."),
        }),+];

        /// The elements of a direction as written.
        #[derive(Clone, Debug, Default)]
        pub(super) struct Elements {
            $(pub(super) $key: Option<<$key::$kind as Keyed>::Params>,)+
        }

        impl Elements {
            /// Reads the keys that begin with `prefix`.
            pub(super) fn take(keys: &mut Keys, prefix: &str) -> Result<Self, PathError> {
                Ok(Self {
                    $($key: keys
                        .take(
                            &format!("{prefix}{}", stringify!($key)),
                            <$key::$kind as Keyed>::read,
                            <$key::$kind as Keyed>::EXPECTS,
                        )?
                        .filter(<$key::$kind as Keyed>::acts),)+
                })
            }

            /// True if there are none. All of them draw random values.
            pub(super) fn is_empty(&self) -> bool {
                true $(&& self.$key.is_none())+
            }

            /// True if packets may overtake each other.
            pub(super) fn disorder(&self) -> bool {
                false $(|| <$key::$kind as Keyed>::DISORDERS && self.$key.is_some())+
            }

            /// Adds the elements to run. `stream` makes the random stream of this name.
            pub(super) fn build(&self, stream: impl Fn(&str) -> Stream, to: &mut Vec<Element>) {
                $(to.extend(self.$key.clone().map(|params| {
                    let stream = stream(&stringify!($key).replace('_', "-"));
                    Element::$kind(Keyed::build(params, stream))
                }));)+
            }
        }

        /// An element after the link of a direction.
        #[derive(Clone, Debug)]
        pub(super) enum Element {
            Delay(Delay),
            LossOverTime(LossOverTime),
            BurstLoss(BurstLoss),
            Policer(Buckets),
            /// A link of its own.
            Link(Box<Link>),
            $($kind($key::$kind),)+
        }

        impl Element {
            /// [`Element::pass`] for elements that few paths have. Takes what it uses by value: a reference would
            /// force the packet's properties into memory for all others.
            #[inline(never)]
            fn pass_rare(&mut self, now: Instant, bytes: u32, capable: bool) -> Result<Instant, Dropped> {
                let (lost, cause) = match self {
                    $(Self::$kind(e) => return Keyed::pass(e, now),)+
                    Self::Delay(e) => return Ok(e.pass(now)),
                    Self::Link(e) => return e.pass_behind(now, bytes, capable),
                    Self::Policer(e) => (!e.conforms(now, bytes), Cause::Policer),
                    Self::LossOverTime(e) => (e.drops(now), Cause::Random),
                    Self::BurstLoss(e) => (e.drops(now), Cause::Burst),
                };
                if lost { Err(Dropped::new(now, cause)) } else { Ok(now) }
            }
        }
    };
}

elements! {
    jitter::Jitter;
    wifi_jitter::WifiJitter;
    loss::Loss;
    gemodel::GilbertElliott;
    reorder::Reorder;
    second_route::SecondRoute;
    aggregate::Aggregate;
}

pub(super) use loss::Loss;

impl Element {
    /// Returns when a packet that comes at `now` leaves, or its drop.
    #[inline]
    pub(super) fn pass(&mut self, now: Instant, p: &PacketInfo) -> Result<Instant, Dropped> {
        match self {
            Self::Delay(e) => Ok(e.pass(now)),
            Self::Jitter(e) => e.pass(now),
            other => other.pass_rare(now, p.bytes, p.ecn.is_capable()),
        }
    }
}
