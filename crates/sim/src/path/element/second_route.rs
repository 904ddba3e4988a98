//! A second route with another delay, which changes the order of packets.

use slowstart::units::{Instant, Span};

use super::super::quantity;
use super::{Dropped, Keyed};
use crate::random::Stream;

/// A second route, which some packets take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::path) struct Route {
    /// The share of packets on the second route, in millionths.
    share: u32,
    /// By how much it is longer.
    longer: Span,
}

impl Route {
    /// Parses `20%,5ms`.
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = quantity::words(text).collect();
        let [share, longer] = words[..] else { return None };
        Some(Self { share: quantity::share(share)?, longer: quantity::some_span(longer)? })
    }
}

/// Sends each packet over one of two routes. Packets of one route keep their order.
#[derive(Clone, Debug)]
pub(in crate::path) struct SecondRoute {
    route: Route,
    stream: Stream,
}

impl Keyed for SecondRoute {
    type Params = Route;
    const EXPECTS: &'static str =
        "the share of packets on the second route and its additional delay, such as 20%,5ms";
    const ABOUT: &'static str = "A share of the packets from the sender takes a longer route.";
    const DISORDERS: bool = true;

    fn read(text: &str) -> Option<Route> {
        Route::parse(text)
    }

    fn build(route: Route, stream: Stream) -> Self {
        Self { route, stream }
    }

    fn pass(&mut self, now: Instant) -> Result<Instant, Dropped> {
        Ok(if self.stream.chance(self.route.share) { now + self.route.longer } else { now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!(Route::parse("20%,5ms"), Some(Route { share: 200_000, longer: Span::millis(5) }));
        for bad in ["", "20%", "5ms,20%", "20%,0s", "20%,5ms,1"] {
            assert_eq!(Route::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn each_route_keeps_its_order() {
        let route = Route::parse("20%,5us").expect("valid");
        let mut element = SecondRoute::build(route, Stream::named(1, "route"));
        let out: Vec<(u64, Instant)> =
            (0..100_000).map(|i| (i * 1000, element.pass(Instant(i * 1000)).expect("it drops nothing"))).collect();
        let longer = out.iter().filter(|(now, at)| at.0 == now + 5000).count();
        assert!(out.iter().all(|(now, at)| at.0 == *now || at.0 == now + 5000));
        // Five standard deviations of a binomial (100,000, 20 %).
        assert!(longer.abs_diff(20_000) < 633, "{longer}");
    }
}
