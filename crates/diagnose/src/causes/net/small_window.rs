//! `net.small-window` of paths: socket buffers at one end of the slow side let too few bytes be under way.
//!
//! Both ends of both sides are given buffers of a set size, which no limit on automatic sizes holds down. If the slow side becomes
//! faster and the gap goes away, its buffers were too small. A rate, a loss or a distance stays as it is with any buffer.

use super::{KINDS, carries_blocks};
use crate::causes::{Cause, CauseEntry, Standing, Told, did_not_move, fit, shown_flip, small_window};
use crate::flips::LARGE_WINDOW;
use crate::gap::Gap;
use crate::probes::Kind;
use duel_model::{Confidence, format_duration_ns};

/// The slow side has to gain: a gap that goes away because the fast side was held up by the set buffers is none of buffers. A
/// tenth is more than two measurements one after the other usually differ by.
const GAINS: f64 = 0.9;

pub(crate) struct SmallWindow;

impl Cause for SmallWindow {
    fn entry(&self) -> &'static CauseEntry {
        &small_window::ENTRY
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn weigh(&self, gap: &Gap<'_>) -> Result<Standing, Standing> {
        if !carries_blocks(gap) {
            let text = "an op that is over before its bytes fill a window does not wait for it".to_owned();
            return Err(Standing::Undecided(gap.at_reference(text)));
        }
        let flip = shown_flip(gap, Kind::Set(&LARGE_WINDOW))?;
        if !flip.moved() {
            return Err(did_not_move(gap, &flip));
        }
        let slow = gap.slow_name();
        let before_ns = gap.known_reference().and_then(|view| view.slow_ns());
        let Some((before_ns, after_ns)) = before_ns.zip(flip.view.slow_ns()) else {
            return Err(Standing::Undecided(gap.not_measured("the rates are not known".to_owned())));
        };
        let times = format!(
            "with buffers of a set size a block to {slow} takes {} instead of {}",
            format_duration_ns(after_ns),
            format_duration_ns(before_ns)
        );
        if after_ns > GAINS * before_ns {
            let text = format!("{times}: it gains nothing, and the fast side loses");
            return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
        }
        let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
        let told = Told {
            summary: format!(
                "Socket buffers at one end of the way to {slow} are too small for it. With buffers of a set size at both ends of \
                 all ways, {} of the gap is gone.",
                flip.percent()
            ),
            remedy: format!(
                "Compare `sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_moderate_rcvbuf` on the machines at both ends of the \
                 way to {slow} with the others: the third number bounds what is under way, and has to be at least rate times round \
                 trip. A program that sets SO_RCVBUF or SO_SNDBUF itself gets no more than that (`ss -tmi`)."
            ),
            facts: vec![gap.evidence(&flip.view, times)],
            further: Vec::new(),
        };
        Ok(fit(gap, &small_window::ENTRY, &flip, confidence, told))
    }
}
