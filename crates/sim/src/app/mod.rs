//! What applications send, and what they do with what arrives. Most connections are limited by their
//! application, not by the path.

mod browser;
mod bursts;
mod media;
mod writes;

use crate::ends::{End, PerEnd};
use crate::random::Stream;
use browser::Browser;
pub use bursts::Bursts;
pub use media::Feedback;
use media::Media;
use slowstart::units::{Instant, Span};
pub use writes::Writes;
use writes::{Piece, Writer};

/// What a flow's application does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One transfer, which has data at all times.
    Bulk {
        /// Size in bytes; `None` for a transfer that goes on until the run ends.
        size: Option<u64>,
    },
    /// One transfer that the caller of the engine writes ([`Engine::write`](crate::engine::Engine::write)).
    External {
        /// Size in bytes.
        size: u64,
    },
    /// One request and one response, after which the server closes (HTTP/1.0).
    Request {
        /// Size of the request, bytes.
        request: u64,
        /// Size of the response, bytes.
        response: u64,
    },
    /// A request, and then more objects of the same page, each requested a short time after the one before is
    /// complete (HTTP/1.1 without pipelining). The server closes after the last.
    Objects {
        /// Size of the first request, bytes.
        request: u64,
        /// Size of the first response, bytes.
        response: u64,
        /// Number of further objects. Their sizes are those of [`Kind::Web`].
        more: u32,
    },
    /// Short objects on one connection, each requested after a think time.
    Web,
    /// Pages of many objects on one connection, with pauses between pages (HTTP/2).
    Browser,
    /// Bursts with pauses between them; the server closes after the last.
    Bursts(Bursts),
    /// One transfer that the sender writes by a schedule; it closes after the last write.
    Writes(Writes),
    /// Video segments: three at once at the beginning, then one in each period.
    Video {
        /// Bit rate of the video, bit/s.
        rate_bps: u64,
    },
    /// Real-time media whose rate follows delay and losses of the path: a frame each 40 ms, without end.
    Media,
}

impl Kind {
    /// True if it has several objects, which it judges the connection by ([`App::objects`]).
    pub const fn has_objects(&self) -> bool {
        match self {
            Self::Objects { .. } | Self::Web | Self::Browser | Self::Bursts(_) | Self::Video { .. } => true,
            Self::Writes(writes) => writes.parts() > 1,
            Self::Bulk { .. } | Self::External { .. } | Self::Request { .. } | Self::Media => false,
        }
    }
}

/// A request and its response.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the request leaves.
    pub at: Instant,
    /// Size of the request, bytes.
    pub request: u64,
    /// Size of the response, bytes.
    pub response: u64,
}

/// The connection as the application of one end sees it.
#[derive(Copy, Clone, Debug)]
pub struct Socket {
    /// The end.
    pub end: End,
    /// True at the end that sends the flow's data.
    pub is_sender: bool,
    /// Bytes delivered to this end, in order.
    pub delivered: u64,
    /// True once the peer's FIN has arrived, and all data before it.
    pub peer_closed: bool,
    /// True once this end has closed.
    pub closed: bool,
}

/// What the application of one end does in answer to an event.
#[derive(Copy, Clone, Debug, Default)]
pub struct Action {
    /// Bytes to write.
    pub write: u64,
    /// Close this end, after that.
    pub close: bool,
    /// When the application of this end acts next: the client sends a request, or the sender writes.
    pub acts_at: Option<Instant>,
    /// The receiver has all data of the flow.
    pub complete: bool,
    /// The bytes that must be delivered to this end before the application has to act again; 0 to act after
    /// each packet.
    pub due: u64,
}

impl Action {
    /// True if the end has something new to send.
    pub(crate) fn sends(&self) -> bool {
        self.write > 0 || self.close
    }
}

/// Size of a request, bytes: the median of `PackMime`'s HTTP requests (Cao et al., INFOCOM 2004).
const REQUEST: u64 = 424;
/// Duration of a video segment, as is common for DASH.
const SEGMENT: Span = Span::secs(4);
/// Segments fetched before playback begins.
const AHEAD: u64 = 3;
/// Mean think time between objects of the web application.
const THINK_TIME: Span = Span::millis(500);
/// Mean time from one object of a page to the request of the next: twice the median of `PackMime`'s, which
/// have a long tail.
const OBJECT_GAP: Span = Span::millis(112);
/// Quantiles of response sizes: thousandths and bytes, those of `PackMime`'s downloads (Cao et al., INFOCOM
/// 2004).
const SIZES: [(u64, u64); 9] = [
    (0, 273),
    (100, 386),
    (250, 691),
    (500, 2258),
    (750, 8895),
    (900, 20_300),
    (950, 35_900),
    (990, 93_000),
    (1000, 604_000),
];

/// What an application judges its connection by: an object of a page, a burst, a segment of a video; or a part of what a
/// sender writes by a schedule.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its size, bytes.
    pub bytes: u64,
    /// When it was requested, or the last of it was written by a schedule.
    pub asked: Instant,
    /// When its last byte arrived; `None` if it has not.
    pub came: Option<Instant>,
}

/// An exchange under way. Offsets count all bytes that an end has written.
#[derive(Copy, Clone, Debug)]
struct Pending {
    exchange: Exchange,
    /// The offset at which the request ends, once it is written.
    request_end: Option<u64>,
    /// The offset at which the response ends, once it is written.
    response_end: Option<u64>,
}

/// The application of a flow, at both of its ends.
#[derive(Clone, Debug)]
pub struct App {
    kind: Kind,
    random: Stream,
    began: Instant,
    /// Number of exchanges begun.
    begun: u64,
    /// Bytes written by each end.
    written: PerEnd<u64>,
    pending: Option<Pending>,
    browser: Browser,
    writer: Writer,
    media: Media,
    objects: Vec<Object>,
    /// Number of objects that are complete, and the bytes of all of them.
    came: (usize, u64),
}

impl App {
    /// An application with a random stream of its own.
    pub fn new(kind: Kind, random: Stream) -> Self {
        Self {
            kind,
            random,
            began: Instant::ZERO,
            begun: 0,
            written: PerEnd::default(),
            pending: None,
            browser: Browser::default(),
            writer: Writer::default(),
            media: Media::default(),
            objects: Vec::new(),
            came: (0, 0),
        }
    }

    /// Begins the application at the client of an established connection; returns its first exchange, or
    /// `None` for an application that requests nothing.
    pub fn begin(&mut self, now: Instant) -> Option<Exchange> {
        self.began = now;
        self.next(now)
    }

    /// Returns the next exchange, where the last was complete at `now`.
    pub fn next(&mut self, now: Instant) -> Option<Exchange> {
        let first = self.begun == 0;
        self.begun += 1;
        match self.kind {
            Kind::Bulk { .. } | Kind::External { .. } | Kind::Writes(_) | Kind::Media => None,
            Kind::Request { request, response } => first.then_some(Exchange { at: now, request, response }),
            Kind::Objects { request, response, .. } if first => Some(Exchange { at: now, request, response }),
            Kind::Objects { more, .. } => (self.begun <= 1 + u64::from(more)).then(|| {
                let wait = self.random.uniform_span(OBJECT_GAP * 2);
                Exchange { at: now + wait, request: REQUEST, response: self.draw_size() }
            }),
            Kind::Web => {
                let wait = if first { Span::ZERO } else { self.random.uniform_span(THINK_TIME * 2) };
                let response = self.draw_size();
                Some(Exchange { at: now + wait, request: REQUEST, response })
            }
            Kind::Browser => {
                let (at, request, response) = self.browser.next(now, &mut self.random);
                Some(Exchange { at, request, response })
            }
            Kind::Bursts(bursts) => bursts.get(self.begun as usize - 1).map(|(pause, response)| Exchange {
                at: now + pause,
                request: REQUEST,
                response,
            }),
            Kind::Video { rate_bps } => {
                let due = self.began + SEGMENT * (self.begun - 1).saturating_sub(AHEAD - 1);
                let response = rate_bps / 8 * (SEGMENT.0 / 1_000_000_000);
                Some(Exchange { at: due.max(now), request: REQUEST, response })
            }
        }
    }

    /// The objects that were requested or written, in that order, in which they arrive
    /// ([`Kind::has_objects`]).
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// True if an object that was requested at `until` or before is not complete.
    pub fn waits_for_object(&self, until: Instant) -> bool {
        self.objects.get(self.came.0).is_some_and(|o| o.asked <= until)
    }

    /// Returns what an end of an established connection does after an event. To be called at least when
    /// [`Action::due`] bytes are delivered and when the peer closes.
    pub fn on_event(&mut self, now: Instant, s: &Socket) -> Action {
        let mut action = match self.kind {
            Kind::Bulk { size } => self.transfer(s, size, false),
            Kind::External { size } => self.transfer(s, Some(size), true),
            Kind::Writes(writes) => {
                let begins = s.is_sender && self.written[s.end] == 0;
                let mut action = self.transfer(s, Some(writes.bytes()), true);
                if !s.is_sender {
                    self.arrive(now, s.delivered);
                    action.due = writes.end(self.came.0).unwrap_or(u64::MAX);
                }
                if begins { self.write(now, s.end, Feedback::default()).unwrap_or_default() } else { action }
            }
            Kind::Media if s.is_sender && self.written[s.end] == 0 => {
                self.write(now, s.end, Feedback::default()).unwrap_or_default()
            }
            Kind::Media => Action { due: u64::MAX, ..Action::default() },
            // The client does not close: the server does, after its response.
            _ if s.end == End::Client => return self.on_response(now, s.delivered),
            _ => self.on_request(s.delivered),
        };
        action.close |= s.peer_closed && !s.closed;
        action
    }

    /// One transfer of `size` bytes.
    fn transfer(&mut self, s: &Socket, size: Option<u64>, external: bool) -> Action {
        let mut action = Action::default();
        if s.is_sender && self.written[s.end] == 0 && !external {
            action.write = size.unwrap_or(u64::MAX >> 2);
            action.close = size.is_some();
            self.written[s.end] = action.write;
        }
        let left = size.filter(|size| *size > s.delivered);
        action.complete = !s.is_sender && size.is_some() && left.is_none();
        action.due = left.unwrap_or(u64::MAX);
        action
    }

    /// Records which objects are complete, now that this many bytes are delivered.
    fn arrive(&mut self, now: Instant, delivered: u64) {
        while let Some(next) =
            self.objects.get_mut(self.came.0).filter(|o| self.came.1 + o.bytes <= delivered)
        {
            next.came = Some(now);
            self.came = (self.came.0 + 1, self.came.1 + next.bytes);
        }
    }

    /// The client of an exchange, to which this many bytes are delivered.
    fn on_response(&mut self, now: Instant, delivered: u64) -> Action {
        self.arrive(now, delivered);
        let response_end = self.pending.and_then(|p| p.response_end);
        let whole = response_end.is_some_and(|end| delivered >= end);
        let next = match self.pending {
            None => self.begin(now),
            Some(_) if whole => self.next(now),
            Some(_) => None,
        };
        if let Some(exchange) = next {
            self.pending = Some(Pending { exchange, request_end: None, response_end: None });
        }
        // The end of the next object, or of the response. One whose end is not known brings bytes that are not yet
        // delivered, unless it is empty.
        let end = self.objects.get(self.came.0).map(|o| self.came.1 + o.bytes);
        let end = end.or(self.pending.and_then(|p| p.response_end)).unwrap_or(0);
        let is_empty = self.pending.is_none_or(|p| p.exchange.response == 0);
        Action {
            acts_at: next.map(|e| e.at),
            complete: whole
                && next.is_none()
                && matches!(self.kind, Kind::Request { .. } | Kind::Objects { .. } | Kind::Bursts(_)),
            due: if is_empty { 0 } else { end.max(delivered + 1) },
            ..Action::default()
        }
    }

    /// The server of an exchange, to which this many bytes are delivered.
    fn on_request(&mut self, delivered: u64) -> Action {
        // A request that is not empty brings bytes that are not yet delivered.
        let is_empty =
            matches!(self.kind, Kind::Request { request: 0, .. } | Kind::Objects { request: 0, .. });
        let due = if is_empty { 0 } else { delivered + 1 };
        match &mut self.pending {
            Some(Pending { exchange, request_end: Some(end), response_end: response @ None })
                if delivered >= *end =>
            {
                self.written[End::Server] += exchange.response;
                *response = Some(self.written[End::Server]);
                let close = match self.kind {
                    Kind::Request { .. } => true,
                    Kind::Objects { more, .. } => self.begun > u64::from(more),
                    Kind::Bursts(bursts) => self.begun as usize == bursts.count(),
                    _ => false,
                };
                Action { write: exchange.response, close, due, ..Action::default() }
            }
            _ => Action { due, ..Action::default() },
        }
    }

    /// The time of [`Action::acts_at`] has come for the sender, which knows `told` of its path: returns its next
    /// write, or `None` if it does not write at times of its own.
    pub fn write(&mut self, now: Instant, sender: End, told: Feedback) -> Option<Action> {
        let Piece { bytes: write, completes, next: acts_at } = match self.kind {
            Kind::Writes(writes) => self.writer.next(&writes, now),
            Kind::Media => {
                Piece { bytes: self.media.frame(now, told), completes: None, next: Some(now + media::FRAME) }
            }
            _ => return None,
        };
        self.written[sender] += write;
        if let Some(bytes) = completes.filter(|_| self.kind.has_objects()) {
            self.objects.push(Object { bytes, asked: now, came: None });
        }
        // It reads nothing.
        Some(Action { write, close: acts_at.is_none(), acts_at, due: u64::MAX, ..Action::default() })
    }

    /// The time of [`Action::acts_at`] has come for the client: returns the bytes of the request to write, or
    /// `None` if no exchange is under way.
    pub fn request(&mut self) -> Option<u64> {
        let p = self.pending.as_mut()?;
        let Exchange { at: asked, response, .. } = p.exchange;
        let object = |bytes| Object { bytes, asked, came: None };
        match self.kind {
            Kind::Browser => self.objects.extend(self.browser.requested().map(object)),
            kind if kind.has_objects() => self.objects.push(object(response)),
            _ => {}
        }
        self.written[End::Client] += p.exchange.request;
        p.request_end = Some(self.written[End::Client]);
        Some(p.exchange.request)
    }

    fn draw_size(&mut self) -> u64 {
        object_size(self.random.below(1000))
    }
}

/// Size of an object of [`Kind::Objects`] and [`Kind::Web`], bytes: the quantile at this number of thousandths,
/// below 1000, linear between those of the table. Sizes are drawn with equal chances for each thousandth.
pub fn object_size(thousandths: u64) -> u64 {
    let i = SIZES.partition_point(|s| s.0 <= thousandths).min(SIZES.len() - 1);
    let ((p0, s0), (p1, s1)) = (SIZES[i - 1], SIZES[i]);
    s0 + (s1 - s0) * (thousandths - p0) / (p1 - p0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_objects_have_the_median_of_their_table() {
        let mut app = App::new(Kind::Web, Stream::named(1, "web"));
        let mut sizes: Vec<u64> =
            (0..4001).filter_map(|_| app.next(Instant::ZERO)).map(|e| e.response).collect();
        sizes.sort_unstable();
        assert!((1900..2700).contains(&sizes[2000]), "{}", sizes[2000]);
        assert!(sizes.iter().all(|s| (273..=604_000).contains(s)));
    }

    /// The last object is complete once, whatever events follow it.
    #[test]
    fn each_object_is_counted_once() {
        let kind = Kind::Objects { request: 100, response: 5000, more: 2 };
        let mut app = App::new(kind, Stream::named(1, "objects"));
        let mut now = Instant::ZERO;
        let (mut asked, mut sent) = (app.on_response(now, 0).acts_at.map(|_| ()), 0);
        let mut completions = 0;
        while asked.take().is_some() {
            now = now + Span::millis(1);
            let request = app.request().expect("under way");
            let action = app.on_request(app.written[End::Client]);
            assert!(request > 0 && action.write > 0);
            sent += action.write;
            now = now + Span::millis(1);
            let answer = app.on_response(now, sent);
            completions += u32::from(answer.complete);
            asked = answer.acts_at.map(|_| ());
        }
        // The FIN, and what else may come.
        for _ in 0..3 {
            now = now + Span::millis(1);
            app.on_response(now, sent);
        }
        assert_eq!((app.objects().len(), completions), (3, 1));
        assert_eq!(app.objects().iter().map(|o| o.bytes).sum::<u64>(), sent);
        let last = Some(Instant::ZERO + Span::millis(6));
        assert!(app.objects().iter().all(|o| o.came.is_some() && o.came <= last));
    }

    #[test]
    fn video_fetches_three_segments_and_then_one_each_period() {
        let mut app = App::new(Kind::Video { rate_bps: 5_000_000 }, Stream::named(1, "video"));
        let mut now = Instant::ZERO;
        let mut at = Vec::new();
        let mut next = app.begin(now);
        while let Some(e) = next.filter(|_| at.len() < 5) {
            assert_eq!(e.response, 2_500_000);
            at.push(e.at.0 / 1_000_000_000);
            now = e.at + Span::millis(1);
            next = app.next(now);
        }
        assert_eq!(at, [0, 0, 0, 4, 8]);
    }
}
