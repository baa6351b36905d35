//! `crypto.block-overhead`: each block, or each call, costs the slow library a fixed time more, however few its bytes.
//!
//! What the slow library takes longer for an op is modelled as `a + b calls + d bytes`. Two sizes of block tell `d` from the
//! rest, and a block handed over in several calls tells `b` from `a`.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit, shown_flip};
use crate::gap::{Flip, FlipLook, Gap, View, percent};
use crate::probes::{FAR_BLOCK, MANY_CALLS, NO_FEATURES};
use duel_model::{Confidence, Param, WorkloadPlan, format_duration_ns};
use duel_stats::Estimate;

static ENTRY: CauseEntry = CauseEntry {
    id: "crypto.block-overhead",
    description: "each block or call costs the library a fixed time more, however few its bytes",
    signature: "the difference in time per op at no bytes, found from two sizes, is worth the gap; hiding the CPU's \
                features does not move it. Blocks handed over in parts show whether it is paid for each block or call",
    at_most: "confirmed",
    needs_machine: false,
};

/// Bytes and calls of an op.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    bytes: f64,
    calls: f64,
}

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |why: &str| Standing::Undecided(gap.not_measured(why.to_owned()));
    if gap.comparison.slow.bytes_in_per_op == Some(0.0) {
        return Err(Standing::RuledOut(gap.not_measured("the op works on no bytes: it has no block".to_owned())));
    }
    let flip = shown_flip(gap, FAR_BLOCK)?;
    let reference = gap.known_reference().ok_or_else(|| open("there is no reference"))?;
    let (Some(here), Some(there)) = (shape(gap, reference), shape(gap, &flip.view)) else {
        return Err(open("the sizes are not known"));
    };
    let (Some(near_ns), Some(far_ns)) = (reference.difference_ns(), flip.view.difference_ns()) else {
        return Err(open("the rates are not known"));
    };
    // Of blocks in calls of one size each, calls grow with the bytes: then only what is paid per block is told.
    let fixed_ns = fixed(here.bytes, near_ns, there.bytes, far_ns);
    let share = fixed_ns.over(near_ns).ok_or_else(|| open("the gap is too small to divide by"))?;
    let told = format!(
        "an op takes {} longer on {slow} than on {fast} with {} bytes, {} with {}: {} of the gap is paid whatever the size",
        time(near_ns.mid),
        here.bytes,
        time(far_ns.mid),
        there.bytes,
        percent(share.mid)
    );
    if share.high() < Flip::NOTEWORTHY {
        return Err(Standing::RuledOut(gap.evidence(&flip.view, told)));
    }
    if share.mid < Flip::NOTEWORTHY || share.mid <= Flip::MANY_LOOKS * share.below {
        return Err(Standing::Undecided(gap.evidence(&flip.view, told)));
    }
    // Setting up a key is paid per block, too, and is dear without the features of the CPU that are made for it.
    if let FlipLook::NotAsked(probe) = gap.flip(NO_FEATURES) {
        return Err(Standing::Wants(vec![probe]));
    }
    if let FlipLook::Shown(hidden) = gap.flip(NO_FEATURES)
        && hidden.moved()
    {
        let text = format!("{told}; but {}: it goes with features of the CPU", gap.tell_flip(&hidden));
        return Err(Standing::Undecided(gap.evidence(&hidden.view, text)));
    }
    let paid = paid_for(gap, [here, there], [near_ns, far_ns])?;
    // Where features of the CPU cannot be hidden, the dear set-up of a key was not ruled out.
    let is_controlled = matches!(gap.flip(NO_FEATURES), FlipLook::Shown(_));
    let confidence = if is_controlled && share.mid >= Flip::EXPLAINS && share.low() > 0.5 {
        Confidence::Confirmed
    } else {
        Confidence::Likely
    };
    let each_ns = paid.each_ns.unwrap_or(fixed_ns);
    let summary = format!(
        "Each {} costs {slow} {} more than {fast} (95 % interval {} to {}), however few its bytes. That is {} of the gap \
         at {} bytes.",
        paid.what,
        time(each_ns.mid),
        time(each_ns.low()),
        time(each_ns.high()),
        percent(share.mid),
        here.bytes
    );
    let remedy = format!(
        "Hand over larger blocks in fewer calls, where the application can; and look for what {slow} does in each of them \
         (a provider or an engine in between, a lock, a fetch of the algorithm): `perf record` on the process that uses it."
    );
    let facts = vec![gap.evidence(&flip.view, told)];
    let told = Told { summary, remedy, facts, further: paid.evidence };
    Ok(fit(gap, &ENTRY, &flip, confidence, told).with(|fit| {
        fit.finding.explains = Some(share.mid.clamp(0.0, 1.0));
        fit.moved_ns = fixed_ns.mid;
    }))
}

/// What a fixed time is paid for.
struct Paid {
    what: &'static str,
    /// The time of one; `None`: what was found without the difference of blocks and calls.
    each_ns: Option<Estimate>,
    evidence: Vec<duel_model::Evidence>,
}

/// Whether the fixed time is one of each block or of each call.
fn paid_for(gap: &Gap<'_>, shapes: [Shape; 2], differences_ns: [Estimate; 2]) -> Result<Paid, Standing> {
    let either = |why: Option<String>| Paid {
        what: "block or call",
        each_ns: None,
        evidence: why.into_iter().map(|why| gap.not_measured(why)).collect(),
    };
    let view = match gap.flip(MANY_CALLS) {
        FlipLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => return Ok(either(Some(format!("blocks and calls are not told apart: {why}")))),
        FlipLook::Shown(flip) => flip.view,
    };
    let (Some(many), Some(many_ns)) = (shape(gap, &view), view.difference_ns()) else { return Ok(either(None)) };
    // The same bytes in fewer calls: the larger of the two blocks.
    let Some(place) = shapes.iter().position(|shape| shape.bytes == many.bytes && shape.calls < many.calls) else {
        return Ok(either(None));
    };
    let further_calls = many.calls - shapes[place].calls;
    let of_calls = many_ns.minus(differences_ns[place]);
    let call_ns = scaled(of_calls, 1.0 / further_calls);
    let fixed_ns = fixed(shapes[0].bytes, differences_ns[0], shapes[1].bytes, differences_ns[1]);
    let text = format!(
        "the {} bytes in {} calls instead of {}: an op takes {} longer on {} than on {}, so {} a call",
        many.bytes,
        many.calls,
        shapes[place].calls,
        time(many_ns.mid),
        gap.slow_name(),
        gap.fast_name(),
        time(call_ns.mid)
    );
    let evidence = vec![gap.evidence(&view, text)];
    let fixed_of_call = scaled(call_ns, shapes[0].calls);
    // Whichever it is for the most part; a mixture is told as what it is.
    let share = fixed_of_call.over(fixed_ns);
    Ok(match share {
        Some(share) if share.low() > 0.5 => Paid { what: "call", each_ns: Some(call_ns), evidence },
        Some(share) if share.high() < 0.5 => {
            Paid { what: "block", each_ns: Some(fixed_ns.minus(fixed_of_call)), evidence }
        }
        _ => Paid { evidence, ..either(None) },
    })
}

/// The difference at no bytes, of the line through the differences at two sizes.
fn fixed(bytes: f64, ns: Estimate, other_bytes: f64, other_ns: Estimate) -> Estimate {
    let span = other_bytes - bytes;
    // (other ns(bytes) - bytes ns(other)) / span: of two independent estimates.
    scaled(ns, other_bytes / span).minus(scaled(other_ns, bytes / span))
}

fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    let Estimate { mid, below, above } = estimate;
    let (below, above) = if factor < 0.0 { (above, below) } else { (below, above) };
    Estimate { mid: mid * factor, below: below * factor.abs(), above: above * factor.abs() }
}

/// What an op of this experiment was.
fn shape(gap: &Gap<'_>, view: &View<'_>) -> Option<Shape> {
    let plan = match &view.variation {
        Some(variation) => gap.case.plan.varied(variation),
        None => gap.case.plan.clone(),
    };
    let WorkloadPlan::Plain(kind) = &plan.workload else { return None };
    let size = |name: &str| {
        let param: &Param = kind.schema.params.iter().find(|param| param.name == name)?;
        kind.get(param).parse::<f64>().ok()
    };
    let (bytes, chunk) = (size("block")?, size("chunk")?);
    let calls = if chunk > 0.0 { (bytes / chunk).ceil() } else { 1.0 };
    Some(Shape { bytes, calls })
}

fn time(ns: f64) -> String {
    if ns < 0.0 { format!("-{}", format_duration_ns(-ns)) } else { format_duration_ns(ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_paid_whatever_the_size_is_found_from_either_side() {
        // 100 ns and 0.5 ns a byte.
        let at = |bytes: f64| Estimate::around(100.0 + 0.5 * bytes, 1.0);
        for (here, there) in [(16.0, 256.0), (1024.0, 64.0)] {
            let fixed = fixed(here, at(here), there, at(there));
            assert!((fixed.mid - 100.0).abs() < 1e-9, "{fixed:?}");
            assert!(fixed.below > 0.9 && fixed.below < 1.1, "{fixed:?}");
        }
    }
}
