//! Measures of a run of web clients. Response times are those of connections whose SYN was retransmitted,
//! without the first timeout of the handshake as the paper has them, in round-trip times unless stated
//! otherwise.

use super::{RetriedConnection, TIMEOUT_S, WebResult};
use slowstart_study::stats::order_statistic;

/// A measure of a run of web clients.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Measure {
    /// The mean response time of connections that used the startup studied.
    Mean,
    /// The mean without all timeouts of the handshake, of which the paper names the first only.
    MeanWithoutWaits,
    /// The mean response time of connections that used standard TCP in the same run.
    MeanOfStandard,
    /// The mean response time of both.
    MeanOfAll,
    /// The mean response time of connections whose SYN was not retransmitted.
    MeanOfOthers,
    /// The quantile of the response time at this share.
    Quantile(f64),
    /// The quantile without connections whose timer expired although nothing was lost.
    LostQuantile(f64),
    /// [`Quantile`](Self::Quantile) in seconds, for connections with an RTT of 50 ms or more.
    FarQuantileS(f64),
    /// Of these, without connections whose timer expired although nothing was lost.
    FarLostQuantileS(f64),
    /// The share of connections that took more than this many seconds, in per cent, among those with an RTT
    /// of 50 ms or more.
    FarSlower(f64),
    /// The mean response time of answers of more than the first and up to the second number of bytes.
    MeanOfSizes(f64, f64),
    /// The median of the same.
    MedianOfSizes(f64, f64),
    /// The shortest response time of answers of more than the first and up to the second number of bytes.
    LeastOfSizes(f64, f64),
    /// The shortest response time of answers up to this many bytes.
    LeastUpTo(f64),
    /// Spearman's rank correlation of the response times of consecutive connections.
    Correlation,
    /// For connections with an RTT of more than a second: the median time, timeouts of the handshake
    /// included, of those whose timer expired although nothing was lost, divided by that of those that lost a
    /// SYN-ACK.
    SpuriousOverLost,
    /// The share of all connections with an RTT below this many seconds, in per cent.
    RttBelow(f64),
    /// The share of all answers up to this many bytes, in per cent.
    AnswersUpTo(f64),
    /// The packet loss rate, in per cent.
    Loss,
    /// The highest packet loss rate of a second, in per cent.
    PeakLoss,
    /// Bytes of completed answers, in per cent of the bottleneck's rate.
    Throughput,
    /// Bytes of IP packets that left the bottleneck, in per cent of what it can carry.
    Utilisation,
    /// The mean throughput of answers of this many bytes or more, bit/s.
    LargeThroughput(f64),
    /// The mean response time in seconds, for connections with an RTT of 50 ms or more.
    FarMeanS,
}

impl Measure {
    /// True if it lies within 0 and 100 %.
    pub fn is_share(self) -> bool {
        use Measure::{AnswersUpTo, FarSlower, Loss, PeakLoss, RttBelow, Utilisation};
        matches!(self, FarSlower(_) | RttBelow(_) | AnswersUpTo(_) | Loss | PeakLoss | Utilisation)
    }

    /// The measure of this name, with these numbers.
    pub fn named(name: &str, numbers: &[f64]) -> Option<Self> {
        Some(match (name, numbers) {
            ("web_mean", []) => Self::Mean,
            ("web_mean_without_waits", []) => Self::MeanWithoutWaits,
            ("web_mean_of_standard", []) => Self::MeanOfStandard,
            ("web_mean_of_all", []) => Self::MeanOfAll,
            ("web_mean_of_others", []) => Self::MeanOfOthers,
            ("web_quantile", [share]) => Self::Quantile(*share),
            ("web_lost_quantile", [share]) => Self::LostQuantile(*share),
            ("web_far_quantile_s", [share]) => Self::FarQuantileS(*share),
            ("web_far_lost_quantile_s", [share]) => Self::FarLostQuantileS(*share),
            ("web_far_slower", [seconds]) => Self::FarSlower(*seconds),
            ("web_mean_of_sizes", [from, to]) => Self::MeanOfSizes(*from, *to),
            ("web_median_of_sizes", [from, to]) => Self::MedianOfSizes(*from, *to),
            ("web_least_of_sizes", [from, to]) => Self::LeastOfSizes(*from, *to),
            ("web_least_up_to", [bytes]) => Self::LeastUpTo(*bytes),
            ("web_correlation", []) => Self::Correlation,
            ("web_spurious_over_lost", []) => Self::SpuriousOverLost,
            ("web_rtt_below", [seconds]) => Self::RttBelow(*seconds),
            ("web_answers_up_to", [bytes]) => Self::AnswersUpTo(*bytes),
            ("web_loss", []) => Self::Loss,
            ("web_peak_loss", []) => Self::PeakLoss,
            ("web_throughput", []) => Self::Throughput,
            ("web_utilisation", []) => Self::Utilisation,
            ("web_large_throughput", [bytes]) => Self::LargeThroughput(*bytes),
            ("web_far_mean_s", []) => Self::FarMeanS,
            _ => return None,
        })
    }

    /// The value in a run, if the run has one.
    pub fn of(&self, result: &WebResult) -> Option<f64> {
        let studied = || result.retried.iter().filter(|h| h.studied);
        let of_sizes = |from: f64, to: f64| {
            studied()
                .filter(move |h| h.bytes as f64 > from && h.bytes as f64 <= to)
                .map(RetriedConnection::rtts)
        };
        let lost = || studied().filter(|h| h.waited_s > 0.0);
        let is_far = |h: &&RetriedConnection| h.rtt_s >= 0.05;
        let far = || studied().filter(is_far).map(|h| h.response_s);
        match *self {
            Self::Mean => mean(studied().map(RetriedConnection::rtts)),
            Self::MeanWithoutWaits => mean(studied().map(|h| (h.response_s - h.waited_more_s) / h.rtt_s)),
            Self::MeanOfStandard => {
                mean(result.retried.iter().filter(|h| !h.studied).map(RetriedConnection::rtts))
            }
            Self::MeanOfAll => mean(result.retried.iter().map(RetriedConnection::rtts)),
            Self::MeanOfOthers => Some(result.others_rtts),
            Self::Quantile(share) => at_share(share, studied().map(RetriedConnection::rtts)),
            Self::LostQuantile(share) => at_share(share, lost().map(RetriedConnection::rtts)),
            Self::FarQuantileS(share) => at_share(share, far()),
            Self::FarLostQuantileS(share) => at_share(share, lost().filter(is_far).map(|h| h.response_s)),
            Self::FarSlower(seconds) => mean(far().map(|s| if s > seconds { 100.0 } else { 0.0 })),
            Self::MeanOfSizes(from, to) => mean(of_sizes(from, to)),
            Self::MedianOfSizes(from, to) => at_share(0.5, of_sizes(from, to)),
            Self::LeastOfSizes(from, to) => at_share(0.0, of_sizes(from, to)),
            Self::LeastUpTo(bytes) => at_share(0.0, of_sizes(0.0, bytes)),
            Self::Correlation => correlation(&studied().map(RetriedConnection::rtts).collect::<Vec<_>>()),
            Self::SpuriousOverLost => {
                let took = |spurious: bool| {
                    let of =
                        studied().filter(move |h| h.rtt_s > TIMEOUT_S && (h.waited_s <= 0.0) == spurious);
                    at_share(0.5, of.map(|h| (h.response_s + h.waited_s) / h.rtt_s))
                };
                Some(took(true)? / took(false)?)
            }
            Self::RttBelow(seconds) => {
                mean(result.drawn.iter().map(|c| if f64::from(c.2) < seconds { 100.0 } else { 0.0 }))
            }
            Self::AnswersUpTo(bytes) => {
                mean(result.drawn.iter().map(|c| if f64::from(c.1) <= bytes { 100.0 } else { 0.0 }))
            }
            Self::Loss => Some(100.0 * result.loss_rate()),
            Self::PeakLoss => Some(100.0 * result.peak_loss_rate()),
            Self::Throughput => Some(100.0 * result.throughput()),
            Self::Utilisation => result.utilisation().map(|u| 100.0 * u),
            Self::LargeThroughput(bytes) => {
                mean(result.large.iter().filter(|l| l.0 as f64 >= bytes).map(|l| l.1))
            }
            Self::FarMeanS => mean(far()),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0_u32), |(sum, n), v| (sum + v, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

fn at_share(share: f64, values: impl Iterator<Item = f64>) -> Option<f64> {
    order_statistic(&values.collect::<Vec<_>>(), share)
}

/// Spearman's rank correlation of each value with the next.
fn correlation(values: &[f64]) -> Option<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut rank = vec![0.0; values.len()];
    for (r, i) in order.into_iter().enumerate() {
        rank[i] = r as f64;
    }
    let middle = mean(rank.iter().copied())?;
    let spread: f64 = rank.iter().map(|r| (r - middle).powi(2)).sum();
    let both: f64 = rank.windows(2).map(|w| (w[0] - middle) * (w[1] - middle)).sum();
    (spread > 0.0).then(|| both / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_chosen_by_size() {
        let answer = |bytes, response_s| RetriedConnection {
            bytes,
            rtt_s: 0.1,
            response_s,
            waited_s: 1.0,
            waited_more_s: 0.0,
            studied: true,
        };
        let retried = vec![
            answer(1000, 0.2),
            answer(1500, 0.3),
            answer(1501, 0.4),
            answer(4380, 0.9),
            answer(4381, 0.1),
        ];
        let result = WebResult { retried, ..WebResult::default() };
        let of =
            |name: &str| Measure::named(name, &[1500.0, 4380.0]).and_then(|m| m.of(&result)).map(f64::round);
        assert_eq!(of("web_least_of_sizes"), Some(4.0));
        assert_eq!(of("web_median_of_sizes"), Some(9.0));
        assert_eq!(of("web_mean_of_sizes"), Some(7.0));
    }
}
