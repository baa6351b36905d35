//! `tls.aes-unused` and `tls.no-asm` of crypto libraries: features of the CPU that the slow library makes no use of.
//!
//! Features are hidden from both libraries. Where the slow one takes as long as before it did not use them, and the time that the
//! fast one then takes longer is what they are worth: the flip's share of the gap. A library without assembly uses none at all; one that only lacks
//! the AES instructions uses others.

use super::KINDS;
use crate::causes::{Cause, CauseEntry, Standing, Told, aes_unused, fit, no_asm, shown_flip};
use crate::flips::{NO_AES, NO_FEATURES};
use crate::gap::{Flip, Gap, View};
use crate::probes::Kind;
use duel_model::{Confidence, WorkloadPlan, format_duration_ns};

/// How much of the time that the fast library gains by features the slow one may gain, and still be said not to use them: the
/// two times of a library were measured one after the other, and a quarter is what counts as a share ([`Flip::NOTEWORTHY`]).
const UNUSED: f64 = Flip::NOTEWORTHY;

/// What hiding features did to both libraries.
struct Hidden<'a> {
    flip: Box<Flip<'a>>,
    /// By how much (ns) an op took longer without them, on the slow library and on the fast one.
    slow_gain_ns: f64,
    fast_gain_ns: f64,
    /// The same of the slow one as a logarithm.
    slow_log: f64,
    told: String,
}

impl<'a> Hidden<'a> {
    fn of(gap: &Gap<'a>, kind: Kind) -> Result<Self, Standing> {
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
    fn are_unused(&self) -> bool {
        self.slow_gain_ns <= UNUSED * self.fast_gain_ns
    }

    /// The slow library takes longer without them, beyond the scatter of times that were measured one after the other.
    fn uses_some(&self, gap: &Gap<'_>) -> bool {
        let half = gap.known_reference().map_or(f64::INFINITY, |view| view.log.half());
        self.slow_log > (Flip::MANY_LOOKS * half.hypot(self.flip.view.log.half())).max(gap.case.margin_log())
    }

    fn fits(self, gap: &Gap<'_>, entry: &CauseEntry, summary: String, remedy: String) -> Standing {
        let confidence = if self.flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
        let facts = vec![gap.evidence(&self.flip.view, self.told)];
        fit(gap, entry, &self.flip, confidence, Told { summary, remedy, facts, further: Vec::new() })
    }
}

/// Whether a library was built with assembly, as far as it tells: OpenSSL 3 names the features that it found
/// (`OPENSSL_CPU_INFO`), and `N/A` where nothing in it asks for them.
fn has_assembly(gap: &Gap<'_>, side: usize) -> Option<bool> {
    if gap.text(side, "crypto.compiler").is_some_and(|flags| flags.contains("OPENSSL_NO_ASM")) {
        return Some(false);
    }
    match gap.text(side, "crypto.cpu")? {
        "N/A" => Some(false),
        found if found.starts_with("OPENSSL_") => Some(true),
        _ => None,
    }
}

/// Whether the plan's op is one of AES.
fn works_with_aes(gap: &Gap<'_>) -> bool {
    let WorkloadPlan::Plain(kind) = &gap.case.plan.workload else { return false };
    let op = kind.schema.params.iter().find(|param| param.name == "op");
    op.is_some_and(|op| kind.get(op).starts_with("aes-"))
}

pub(in crate::causes) struct AesUnused;

impl Cause for AesUnused {
    fn entry(&self) -> &'static CauseEntry {
        &aes_unused::ENTRY
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn weigh(&self, gap: &Gap<'_>) -> Result<Standing, Standing> {
        let slow = gap.slow_name();
        if !works_with_aes(gap) {
            return Err(Standing::RuledOut(gap.not_measured("the op is none of AES".to_owned())));
        }
        let hidden = Hidden::of(gap, Kind::Set(&NO_AES))?;
        if hidden.flip.is_negligible() {
            return Err(Standing::RuledOut(gap.evidence(&hidden.flip.view, hidden.told)));
        }
        if !hidden.flip.moved() {
            return Err(Standing::Undecided(gap.evidence(&hidden.flip.view, hidden.told)));
        }
        if !hidden.are_unused() {
            let text = format!("{}: both use them", hidden.told);
            return Err(Standing::Undecided(gap.evidence(&hidden.flip.view, text)));
        }
        // One that uses no feature at all lacks more than these.
        let has_assembly = has_assembly(gap, gap.slow);
        if has_assembly != Some(true) {
            let all = Hidden::of(gap, Kind::Set(&NO_FEATURES))?;
            if has_assembly == Some(false) || !all.uses_some(gap) {
                let text = format!("{}; it uses no other feature either, see {}", hidden.told, no_asm::ENTRY.id);
                return Err(Standing::Undecided(gap.evidence(&all.flip.view, text)));
            }
        }
        let summary = format!(
            "{slow} does not use the CPU's AES instructions: {}. That is {} of the gap.",
            hidden.told,
            hidden.flip.percent()
        );
        let remedy = format!(
            "Look for OPENSSL_ia32cap in the environment of what uses {slow}, and at the hypervisor's CPU model (`grep -c aes \
             /proc/cpuinfo`); else give it a newer libcrypto."
        );
        Ok(hidden.fits(gap, &aes_unused::ENTRY, summary, remedy))
    }
}

pub(in crate::causes) struct NoAsm;

impl Cause for NoAsm {
    fn entry(&self) -> &'static CauseEntry {
        &no_asm::ENTRY
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn weigh(&self, gap: &Gap<'_>) -> Result<Standing, Standing> {
        let slow = gap.slow_name();
        let has_assembly = has_assembly(gap, gap.slow);
        if has_assembly == Some(true) {
            let text =
                format!("{slow} tells which features of the CPU it has found, as only a library with assembly does");
            return Err(Standing::RuledOut(gap.first_contact(text)));
        }
        let hidden = Hidden::of(gap, Kind::Set(&NO_FEATURES))?;
        if has_assembly.is_none() && hidden.uses_some(gap) {
            let text = format!("{}: what uses features of the CPU has assembly", hidden.told);
            return Err(Standing::RuledOut(gap.evidence(&hidden.flip.view, text)));
        }
        if !hidden.flip.moved() || !hidden.are_unused() {
            let text = format!("{}: that leaves open whether it matters", hidden.told);
            return Err(Standing::Undecided(gap.evidence(&hidden.flip.view, text)));
        }
        let built = match has_assembly {
            Some(_) => "was built without assembly, by what it tells of itself",
            None => "uses no feature of the CPU, as a library that was built without assembly",
        };
        let summary = format!("{slow} {built}: {}. That is {} of the gap.", hidden.told, hidden.flip.percent());
        let remedy = format!(
            "Give what uses {slow} a libcrypto that was built with assembly: the distribution's package; for one's own build \
             leave out `no-asm`."
        );
        let mut standing = hidden.fits(gap, &no_asm::ENTRY, summary, remedy);
        // A mask in its environment looks the same.
        if let (Standing::Fits(fit), None) = (&mut standing, has_assembly) {
            fit.finding.confidence = fit.finding.confidence.min(Confidence::Likely);
        }
        Ok(standing)
    }
}
