//! Builds a path to run from a path as written.

use std::sync::Arc;

use slowstart::units::{Bytes, Instant, Span};

use super::super::bottleneck::{Beside, Bottleneck};
use super::super::bucket::Buckets;
use super::super::carrier::Carrier;
use super::super::delay::{Course, Delay};
use super::super::element::{Element, Loss};
use super::super::fade::BurstLoss;
use super::super::hops::Hops;
use super::super::link::{Limit, Link, RandomDrop, Service};
use super::super::loss::{LossOverTime, Script};
use super::super::netem::{Spec, Stage};
use super::super::outage::Outage;
use super::super::rates::{Profile, Rates};
use super::super::trace::Opportunities;
use super::super::{Direction, Path};
use super::chain::QueueSpec;
use super::keys::PACKET;
use super::supply::{Supply, UNLIMITED};
use super::{DirectionSpec, PathSpec};
use crate::random::Stream;

/// A link with its queue.
enum End {
    DropTail(Box<Link>),
    Discipline(Box<Bottleneck>),
}

/// The link that this queue needs.
fn end_of(
    queue: &QueueSpec,
    service: Service,
    random_drop: Option<RandomDrop>,
    mark: Option<Span>,
    carrier: Option<Carrier>,
    stream: Stream,
) -> End {
    match &queue.discipline {
        None => End::DropTail(Box::new(Link::new(service, queue.limit, random_drop).with_marks(mark))),
        Some(discipline) => {
            let beside = Beside { random_drop, mark_above: mark, ..Beside::default() };
            let bottleneck = Bottleneck::new(service, discipline.build(stream), carrier);
            End::Discipline(Box::new(bottleneck.with(beside)))
        }
    }
}

impl PathSpec {
    /// Builds a path to run. All random values come from the seed, each from a stream of its own.
    pub fn build(&self, seed: u64) -> Path {
        self.draw(seed).build_fixed(seed)
    }

    fn build_fixed(&self, seed: u64) -> Path {
        let stream = |name: &str| Stream::named(seed, name);
        let phase = |name: &str, period: Span| Span(stream(name).below(period.0));
        // All traces of a path were recorded together, so they start at the same place.
        let start = match (&self.supply, &self.delay_trace, &self.loss_trace) {
            _ if !self.random_start => Span::ZERO,
            (Supply::Trace(trace), ..) => phase("trace-start", trace.period()),
            (_, Some(trace), _) => phase("trace-start", trace.period()),
            (.., Some(trace)) => phase("trace-start", trace.period()),
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
        let service = match self.shaper.filter(|shaper| !shaper.is_after) {
            Some(shaper) => Service::Shaped(Box::new((service, Buckets::new(&shaper.params)))),
            None => service,
        };
        let carrier = self.second_carrier.map(Carrier::new);
        let forward_link =
            end_of(&self.queue, service, random_drop, self.mark, carrier, stream("forward.queue"));
        let back_link = self.back_link.as_ref().map(|(rate, queue)| {
            let steady = Profile::Steps([(Instant::ZERO, *rate)].into());
            end_of(queue, Service::Rates(Rates::new(steady)), None, None, None, stream("back.queue"))
        });

        let handover_phase = |period| phase("forward.handover.phase", period);
        let mut first = Vec::new();
        if let (Some(burst), Some((_, period))) = (self.handover_loss, self.handover) {
            let loss = stream("forward.handover.loss");
            first.push(BurstLoss::at_handovers(burst, period, handover_phase(period), loss));
        }
        first.extend(
            self.fades.map(|f| BurstLoss::fades(f, stream("forward.fade.times"), stream("forward.fade"))),
        );
        // Both directions are interrupted at the same times.
        let outage = self.outage.map(|spec| {
            let first = match spec.every {
                Some(period) if spec.at_handovers => Span((period - handover_phase(period)).0 % period.0),
                Some(period) if spec.at.is_none() => phase("outage", period),
                _ => Span::ZERO,
            };
            Outage::new(&spec, first)
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
            phase: handover_phase(period),
            seed: stream("forward.handover").any(),
        }));
        let mut forward = self
            .forward
            .build(seed, "forward", Some(forward_link), first, courses)
            .interrupted(outage.as_ref());
        forward.beyond.extend(self.loss_trace.as_ref().map(|t| {
            let lost = LossOverTime::new(Arc::clone(t), start, stream("forward.loss-trace"));
            Element::LossOverTime(lost)
        }));
        let mut behind = Vec::new();
        if let Some(shaper) = self.shaper.filter(|shaper| shaper.is_after) {
            // It delays by its tokens alone: its medium is the link before it.
            let fast = Profile::Steps([(Instant::ZERO, UNLIMITED)].into());
            let buckets = Buckets::new(&shaper.params);
            let service = Service::Shaped(Box::new((Service::Rates(Rates::new(fast)), buckets)));
            behind.push(Element::Link(Box::new(Link::new(
                service,
                Limit::Bytes(self.facts.bdp.max(PACKET)),
                None,
            ))));
        }
        if let Some((rate, queue)) = &self.host {
            let steady = Profile::Steps([(Instant::ZERO, *rate)].into());
            let service = Service::Rates(Rates::new(steady));
            let own = Bottleneck::new(service, queue.build(stream("forward.host-queue")), None);
            forward.bottleneck = Some(Box::new(own));
            forward.interface = Some((*rate, Bytes(queue.most_bytes())));
            forward.slow_interface = *rate <= self.facts.rate;
        }
        match self.policer {
            Some(p) if p.is_after => behind.push(Element::Policer(Buckets::new(&p.params))),
            Some(p) => forward.policer = Some(Box::new(Buckets::new(&p.params))),
            None => {}
        }
        forward.beyond.splice(0..0, behind);
        let (then, back_delays) = self.build_then(seed);
        forward.hops = Hops::new(then);
        let mut path = Path {
            forward,
            back_delays,
            back: self
                .back
                .build(seed, "back", back_link, Vec::new(), Vec::new())
                .interrupted(outage.as_ref()),
            facts: self.facts,
            drawn: self.drawn.clone(),
        };
        path.back.propagation += self.then.iter().fold(Span::ZERO, |d, l| d + l.back.delay);
        for direction in [&mut path.forward, &mut path.back] {
            direction.staged = direction.netem.is_some() || direction.hops.is_some();
            direction.late = direction.staged || direction.bottleneck.is_some();
            direction.disorders |=
                direction.hops.as_ref().is_some_and(|hops| hops.ways().any(Direction::disorders));
            direction.simple = direction.has_simple_elements();
        }
        path
    }
}

impl Direction {
    /// Adds the outages, if there are any, to the queue discipline, or to the link if there is none.
    fn interrupted(mut self, outage: Option<&Outage>) -> Self {
        let Some(outage) = outage else { return self };
        match self.bottleneck.take() {
            Some(bottleneck) => self.bottleneck = Some(Box::new(bottleneck.with_outage(outage.clone()))),
            None => self.outage = Some(Box::new(outage.clone())),
        }
        self
    }
}

impl DirectionSpec {
    fn build(
        &self,
        seed: u64,
        name: &str,
        end: Option<End>,
        bursts: Vec<BurstLoss>,
        courses: Vec<Course>,
    ) -> Direction {
        let stream = |what: &str| Stream::named(seed, &format!("{name}.{what}"));
        let scripts = self.scripts.iter().map(|(kind, places)| Script::new(*kind, places)).collect();
        let mut beyond = Vec::new();
        beyond.extend(bursts.into_iter().map(Element::BurstLoss));
        beyond.extend(courses.into_iter().map(|c| Element::Delay(Delay::new(c))));
        self.elements.build(stream, &mut beyond);
        let (link, bottleneck) = match end {
            Some(End::DropTail(link)) => (Some(*link), None),
            Some(End::Discipline(bottleneck)) => (None, Some(bottleneck)),
            None => (None, None),
        };
        Direction {
            scripts,
            netem: self.netem.as_ref().map(|spec| Box::new(Stage::new(spec, stream("netem")))),
            policer: None,
            link,
            outage: None,
            bottleneck,
            propagation: self.delay,
            beyond,
            hops: None,
            staged: false,
            late: false,
            simple: false,
            disorders: self.elements.disorder()
                || self.duplicate > 0
                || self.netem.as_ref().is_some_and(Spec::disorders),
            duplicates: (self.duplicate > 0).then(|| Loss::new(self.duplicate, stream("duplicate"))),
            filters: self.filters,
            interface: self.interface.map(|rate| (rate, Bytes::ZERO)),
            slow_interface: false,
            grants: self.grants,
        }
    }
}
