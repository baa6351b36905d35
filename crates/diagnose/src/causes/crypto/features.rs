//! Features of the CPU that the slow library makes no use of: what `tls.aes-unused` and `tls.no-asm` of crypto libraries share.
//!
//! Features are hidden from both libraries. Where the slow one takes as long as before it did not use them, and the time that the
//! fast one then takes longer is what they are worth: the flip's share of the gap. A library without assembly uses none at all; one that only lacks
//! the AES instructions uses others.

use crate::cause::{CauseEntry, Standing, Told, fit, shown_flip};
use crate::gap::{Flip, Gap, View};
use crate::probes::Kind;
use duel_model::{Confidence, format_duration_ns};

/// How much of the time that the fast library gains by features the slow one may gain, and still be said not to use them: the
/// two times of a library were measured one after the other, and a quarter is what counts as a share ([`Flip::NOTEWORTHY`]).
const UNUSED: f64 = Flip::NOTEWORTHY;

/// What hiding features did to both libraries.
pub(super) struct Hidden<'a> {
    pub(super) flip: Box<Flip<'a>>,
    /// By how much (ns) an op took longer without them, on the slow library and on the fast one.
    slow_gain_ns: f64,
    fast_gain_ns: f64,
    /// The same of the slow one as a logarithm.
    slow_log: f64,
    pub(super) told: String,
}

impl<'a> Hidden<'a> {
    pub(super) fn of(gap: &Gap<'a>, kind: Kind) -> Result<Self, Standing> {
        let open = |why: &str| Standing::Undecided(gap.not_measured(why.to_owned()));
        let flip = shown_flip(gap, kind)?;
        let reference = gap.known_reference().ok_or_else(|| open("there is no reference"))?;
        let times = |view: &View<'_>| Some([view.slow_ns()?, view.fast_ns()?]);
        let (Some([slow, fast]), Some([slow_hidden, fast_hidden])) = (times(reference), times(&flip.view)) else {
            return Err(open("the rates are not known"));
        };
        let [slow_told, slow_hidden_told, fast_told, fast_hidden_told] =
            [slow, slow_hidden, fast, fast_hidden].map(format_duration_ns);
        let told = format!(
            "{}: {} takes {slow_hidden_told} for an op instead of {slow_told}, {} {fast_hidden_told} instead of {fast_told}",
            flip.kind.phrase(),
            gap.slow_name(),
            gap.fast_name(),
        );
        Ok(Self {
            slow_gain_ns: slow_hidden - slow,
            fast_gain_ns: fast_hidden - fast,
            slow_log: (slow_hidden / slow).ln(),
            flip,
            told,
        })
    }

    /// The slow library makes no use of them, in time and not in logarithms: of an op that takes long for another reason they
    /// are a small share, and are used all the same.
    pub(super) fn are_unused(&self) -> bool {
        self.slow_gain_ns <= UNUSED * self.fast_gain_ns
    }

    /// The slow library takes longer without them, beyond the scatter of times that were measured one after the other.
    pub(super) fn uses_some(&self, gap: &Gap<'_>) -> bool {
        let half = gap.known_reference().map_or(f64::INFINITY, |view| view.log.half());
        self.slow_log > (Flip::MANY_LOOKS * half.hypot(self.flip.view.log.half())).max(gap.case.margin_log())
    }

    pub(super) fn fits(self, gap: &Gap<'_>, entry: &CauseEntry, summary: String, remedy: String) -> Standing {
        let confidence = if self.flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
        let facts = vec![gap.evidence(&self.flip.view, self.told)];
        fit(gap, entry, &self.flip, confidence, Told { summary, remedy, facts, further: Vec::new() })
    }
}

/// Whether a library was built with assembly, as far as it tells: OpenSSL 3 names the features that it found
/// (`OPENSSL_CPU_INFO`), and `N/A` where nothing in it asks for them.
pub(super) fn has_assembly(gap: &Gap<'_>, side: usize) -> Option<bool> {
    if gap.text(side, "crypto.compiler").is_some_and(|flags| flags.contains("OPENSSL_NO_ASM")) {
        return Some(false);
    }
    match gap.text(side, "crypto.cpu")? {
        "N/A" => Some(false),
        found if found.starts_with("OPENSSL_") => Some(true),
        _ => None,
    }
}
