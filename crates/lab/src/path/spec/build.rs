//! Builds a path to run from a path as written.

use std::sync::Arc;

use slowstart::units::{Instant, Span};

use super::super::aggregate::Aggregate;
use super::super::delay::{Course, Delay, Jitter};
use super::super::link::{Link, RandomDrop, Service};
use super::super::loss::{Loss, Script};
use super::super::rates::{Profile, Rates};
use super::super::trace::Opportunities;
use super::super::{Direction, Element, Path};
use super::supply::Supply;
use super::{DirectionSpec, PathSpec};
use crate::random::Stream;

impl PathSpec {
    /// Builds a path to run. All random values come from the seed, each from a stream of its own.
    pub fn build(&self, seed: u64) -> Path {
        self.draw(seed).build_fixed(seed)
    }

    fn build_fixed(&self, seed: u64) -> Path {
        let stream = |name: &str| Stream::named(seed, name);
        let phase = |name: &str, period: Span| Span(stream(name).below(period.0));
        // Both traces of a path were recorded together, so they start at the same place.
        let start = match (&self.supply, &self.delay_trace) {
            _ if !self.random_start => Span::ZERO,
            (Supply::Trace(trace), _) => phase("trace-start", trace.period()),
            (_, Some(trace)) => phase("trace-start", trace.period()),
            _ => Span::ZERO,
        };
        let service = match &self.supply {
            Supply::Steps(steps) => Service::Rates(Rates::new(Profile::Steps(Arc::clone(steps)))),
            &Supply::Drawn { mean, spread, period } => Service::Rates(Rates::new(Profile::Drawn {
                mean,
                spread,
                period,
                phase: phase("forward.rate.phase", period),
                seed: stream("forward.rate").any(),
            })),
            Supply::Trace(trace) => Service::Opportunities(Opportunities::new(Arc::clone(trace), start)),
        };
        let random_drop = self.random_drop.map(|(share, above)| RandomDrop {
            share,
            above,
            stream: stream("forward.random-drop"),
        });
        let forward_link = Link::new(service, self.limit, random_drop);
        let back_link = self.back_link.map(|(rate, limit)| {
            let steady = Profile::Steps([(Instant::ZERO, rate)].into());
            Link::new(Service::Rates(Rates::new(steady)), limit, None)
        });

        let mut courses = Vec::new();
        courses
            .extend(self.delay_trace.as_ref().map(|t| Course::Trace { trace: Arc::clone(t), offset: start }));
        courses.extend(
            self.wave
                .map(|(amplitude, period)| Course::wave(amplitude, period, stream("forward.vary").any())),
        );
        courses.extend(self.handover.map(|(most, period)| Course::Handover {
            most,
            period,
            phase: phase("forward.handover.phase", period),
            seed: stream("forward.handover").any(),
        }));
        Path {
            forward: self.forward.build(seed, "forward", Some(forward_link), courses),
            back: self.back.build(seed, "back", back_link, Vec::new()),
            facts: self.facts,
            drawn: self.drawn.clone(),
        }
    }
}

impl DirectionSpec {
    fn build(&self, seed: u64, name: &str, link: Option<Link>, courses: Vec<Course>) -> Direction {
        let stream = |what: &str| Stream::named(seed, &format!("{name}.{what}"));
        let scripts = self.scripts.iter().map(|(kind, places)| Script::new(*kind, places)).collect();
        let mut beyond = Vec::new();
        beyond.extend(courses.into_iter().map(|c| Element::Delay(Delay::new(c))));
        if self.jitter > Span::ZERO {
            beyond.push(Element::Jitter(Jitter::new(self.jitter, stream("jitter"))));
        }
        if self.loss > 0 {
            beyond.push(Element::Loss(Loss::new(self.loss, stream("loss"))));
        }
        beyond.extend(self.aggregate.map(|period| {
            let phase = Span(stream("aggregate").below(period.0));
            Element::Aggregate(Aggregate::new(period, phase))
        }));
        Direction {
            scripts,
            link,
            propagation: self.delay,
            beyond,
            filters: self.filters,
            interface: self.interface,
            grants: self.grants,
        }
    }
}
