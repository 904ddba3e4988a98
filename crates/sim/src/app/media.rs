//! Real-time media whose rate follows the path, such as a call's video: a frame at a fixed interval, whose size is
//! the rate. The rules of the rate are those of `SCReAM` (RFC 8298 section 4.1.3) without its trend of the delay; the
//! frames are sent by the flow's own transport and congestion control, which retransmits.

use slowstart::units::{Instant, Span};

/// From one frame to the next: 25 frames a second.
pub(super) const FRAME: Span = Span::millis(40);
/// `RATE_ADJUST_INTERVAL` of RFC 8298.
const ADJUST: Span = Span::millis(200);
/// Its `QDELAY_TARGET_LO`.
const TARGET: Span = Span::millis(100);
/// Its `BETA_R`: the rate after a loss, in thousandths of the rate before.
const AFTER_LOSS: u64 = 900;
/// Its `TARGET_RATE_SCALE_RTP_QDELAY`: the rate where frames wait at the sender, in thousandths.
const AFTER_WAIT: u64 = 950;
/// Its `RTP_QDELAY_TH`: how long frames may wait at the sender.
const WAIT: Span = Span::millis(20);
/// Its `RAMP_UP_SPEED`, bit/s in a second.
const RAMP_BPS: u64 = 200_000;
/// The rate of the encoder, bit/s: RFC 8298 leaves its bounds to the application. It begins with the least.
const LEAST_BPS: u64 = 300_000;
const MOST_BPS: u64 = 5_000_000;

/// What the sender of a flow knows of the path.
#[derive(Copy, Clone, Debug, Default)]
pub struct Feedback {
    /// The smoothed round-trip time above the least one.
    pub queue_delay: Span,
    /// Bytes written and not yet sent.
    pub unsent: u64,
    /// Losses are being repaired.
    pub recovers: bool,
}

/// The encoder.
#[derive(Copy, Clone, Debug)]
pub(super) struct Media {
    rate_bps: u64,
    adjusts_at: Instant,
    /// Losses were being repaired at some frame since the last adjustment.
    lost: bool,
}

impl Default for Media {
    fn default() -> Self {
        Self { rate_bps: LEAST_BPS, adjusts_at: Instant::ZERO, lost: false }
    }
}

impl Media {
    /// The bytes of the frame that is due now.
    pub(super) fn frame(&mut self, now: Instant, told: Feedback) -> u64 {
        self.lost |= told.recovers;
        if now >= self.adjusts_at {
            self.adjust(told);
            self.adjusts_at = now + ADJUST;
            self.lost = false;
        }
        self.bytes_in(FRAME)
    }

    fn bytes_in(&self, time: Span) -> u64 {
        self.rate_bps * (time.0 / 1_000_000) / 8000
    }

    fn adjust(&mut self, told: Feedback) {
        let scaled = |thousandths| self.rate_bps * thousandths / 1000;
        let rate = if self.lost {
            scaled(AFTER_LOSS)
        } else if told.queue_delay > TARGET || told.unsent > self.bytes_in(WAIT) {
            scaled(AFTER_WAIT)
        } else {
            // The nearer the delay is to its target, the slower it rises.
            let left = (TARGET - told.queue_delay).0 / 1_000_000;
            self.rate_bps + RAMP_BPS * (ADJUST.0 / 1_000_000) * left / (1000 * (TARGET.0 / 1_000_000))
        };
        self.rate_bps = rate.clamp(LEAST_BPS, MOST_BPS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate after the frames of `seconds` seconds.
    fn after(media: &mut Media, from: u64, seconds: u64, told: Feedback) -> u64 {
        for frame in 0..seconds * 25 {
            media.frame(Instant::ZERO + Span::secs(from) + FRAME * frame, told);
        }
        media.rate_bps
    }

    #[test]
    fn the_rate_rises_on_a_free_path_and_falls_with_delay_loss_and_waiting() {
        let mut media = Media::default();
        let free = Feedback::default();
        // 200 kbit/s each second, up to the encoder's most.
        assert_eq!(after(&mut media, 0, 5, free), LEAST_BPS + 5 * RAMP_BPS);
        let half = Feedback { queue_delay: TARGET / 2, ..free };
        assert_eq!(after(&mut media, 5, 2, half), LEAST_BPS + 6 * RAMP_BPS);
        assert_eq!(after(&mut media, 7, 40, free), MOST_BPS);
        for (bad, least, most) in [
            // Five times a second 5 or 10 % less.
            (Feedback { queue_delay: TARGET * 2, ..free }, 0.76, 0.78),
            (Feedback { unsent: 100_000, ..free }, 0.76, 0.78),
            (Feedback { recovers: true, ..free }, 0.58, 0.60),
        ] {
            let mut media = media;
            let rate = after(&mut media, 60, 1, bad) as f64 / MOST_BPS as f64;
            assert!((least..most).contains(&rate), "{bad:?}: {rate}");
            assert_eq!(after(&mut media, 61, 60, bad), LEAST_BPS);
        }
    }
}
