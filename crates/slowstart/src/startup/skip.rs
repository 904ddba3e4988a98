//! neqo's rule for limited senders: which ACKs its slow starts do not see (`classic_cc.rs`).

use crate::param::choice;
use crate::view::Limit;

choice! {
    /// Which ACKs are counted but not judged, because less than the window was in flight when their data was
    /// sent: neqo's rule for limited senders, as it ships since June 2026 (#3760) `paced`, and from May to
    /// June (#3640) `limited`.
    pub enum Skip {
        /// No ACKs: each is judged.
        Off = "off",
        /// Of data sent while the application or the receive window limited the sender.
        Limited = "limited",
        /// Also while the pacer held data back: the window does not grow either.
        Paced = "paced",
    }
}

impl Skip {
    /// Returns true if an ACK of data sent under this limit is not judged.
    pub(super) fn skips(self, limit: Limit) -> bool {
        match self {
            Self::Off => false,
            Self::Limited => !limit.allows_growth(),
            Self::Paced => limit != Limit::Window,
        }
    }
}
