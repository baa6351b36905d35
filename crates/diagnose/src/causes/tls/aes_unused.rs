//! `tls.aes-unused`: the slow side encrypts AES without the CPU's AES instructions.
//!
//! With the instructions AES-GCM is at least as fast as ChaCha20, on every CPU that has them; without, it is several
//! times slower. So the signature compares each side with itself and holds on any CPU:
//!
//! * with ChaCha20 forced the per-byte gap goes away, so neither the network nor the CPU nor the library at large is
//!   slow;
//! * on the slow side AES costs more than ChaCha20, on the fast side it does not;
//! * the gap grows with the size of the response, for the cipher is paid per byte.
//!
//! Where the machine is at hand, the server's libcrypto is looked at as well (the lens). It confirms, and it acquits: a
//! library that gains by the instructions in a process of ours, and has them in the running server, uses them.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, needs_tls, of_both, shown_look};
use crate::evidence::tls_libraries::other_tls_library;
use crate::gap::{Flip, FlipLook, Gap, LensLook, Look, View, per_byte_share, percent};
use crate::probes::{CHACHA20, RANGE_1, SMALLEST_SWEEP_BYTES, SUITE};
use crate::twins::Twins;
use duel_model::{
    Capabilities, Confidence, Evidence, HardwareUse, LensOp, LensReading, TwinChange, format_duration_ns,
    sanitize_line, web,
};
use duel_stats::Estimate;

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.aes-unused",
    description: "the CPU's AES instructions are not used by the server's TLS library, or missing",
    signature: "both sides use the same AES-GCM suite; with ChaCha20 forced the per-byte gap goes away; on the \
                slow side AES costs more than ChaCha20, on the fast side it does not, or less than half as much \
                more (in logarithms: the two are probed one after the other, and the machine may be slower during \
                one); the gap is paid per byte. The signature compares each side with itself, so it holds on any \
                CPU. Or the slow side chose ChaCha20, AES makes it twice as slow, and ChaCha20 on both takes the \
                gap away",
    at_most: "likely from outside: an AES that is slow for another reason looks the same; confirmed where the lens \
              finds the instructions masked or never used and the flip confirms (or takes more than half away, \
              where the running server was read to lack them), or a twin without the mask is without the gap",
    needs_machine: false,
};

/// ChaCha20 is called sound on the slow side when a byte costs less than this many times what it costs on the fast side.
/// The same code on two CPUs of one kind comes out near 1; a library without assembly is beyond 3.
const SOUND_CHACHA20: f64 = 1.5;
/// A mask that takes AES away may take the wide vectors as well (OPENSSL_ia32cap without a second word clears all of
/// that), by which ChaCha20 loses a factor of two or so, and AES of ten and more. Up to here it is called slow by that, if
/// AES is at least [`CLEARLY_DEARER`] on the same server.
const NO_ASSEMBLY: f64 = 3.0;
/// Times that a byte costs more by AES than by ChaCha20. On CPUs without the instructions it is 3 to 15.
const CLEARLY_DEARER: f64 = 2.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    needs_tls(gap)?;
    let cipher = |side| gap.text(side, web::TLS_CIPHER);
    let [of_slow, of_fast] = of_both(gap, "the ciphers of both sides are not known", cipher)?;
    if of_slow.contains("CHACHA20") && of_fast.contains("AES") {
        return weigh_avoided(gap);
    }
    if !of_slow.contains("AES") {
        let text = format!("{slow} negotiated {}, which is not AES", sanitize_line(of_slow));
        return Err(Standing::RuledOut(gap.first_contact(text)));
    }
    if of_slow != of_fast || !of_slow.contains("GCM") {
        let (of_slow, of_fast) = (sanitize_line(of_slow), sanitize_line(of_fast));
        let text = format!("{slow} uses {of_slow}, {fast} {of_fast}: only the same AES-GCM cipher can be compared");
        return Err(Standing::Undecided(gap.first_contact(text)));
    }

    // What a cipher costs for a handful of bytes drowns in everything else; a flip that seems to move it is chance.
    if gap.case.smallest_body_bytes().is_none_or(|bytes| bytes < SMALLEST_SWEEP_BYTES) {
        let text = "the responses are too small, or of unknown size, to tell what a byte costs".to_owned();
        return Err(Standing::Undecided(gap.first_contact(text)));
    }

    let sweep = gap.look(RANGE_1);
    let per_byte = match (&sweep, gap.known_reference()) {
        (Look::Shown(first_byte), Some(reference)) => per_byte_share(reference, first_byte).map(|at| (first_byte, at)),
        _ => None,
    };
    if let Some((first_byte, share)) = per_byte
        && share.high() < Flip::NOTEWORTHY
    {
        let text = format!("{}: {}; the gap is paid per request", RANGE_1.phrase(), gap.tell(first_byte));
        return Err(Standing::RuledOut(gap.evidence(first_byte, text)));
    }
    Ok(match (gap.flip(CHACHA20), sweep) {
        (FlipLook::Missing(why), _) => Standing::Undecided(gap.not_measured(why)),
        (FlipLook::Shown(flip), _) if flip.is_negligible() => did_not_move(gap, &flip),
        (FlipLook::NotAsked(flip), Look::NotAsked(sweep)) if flip.id != "alone" && flip.id != "closed" => {
            Standing::Wants(vec![flip, sweep])
        }
        (FlipLook::NotAsked(probe), _) | (FlipLook::Shown(_), Look::NotAsked(probe)) => Standing::Wants(vec![probe]),
        (FlipLook::Shown(flip), Look::Missing(why)) => judge(gap, &flip, Err(why)),
        (FlipLook::Shown(flip), Look::Shown(first_byte)) => judge(gap, &flip, Ok(first_byte)),
    })
}

/// The slow side has chosen ChaCha20 where the fast one uses AES, as libraries do that find no AES instructions. Both
/// flips together tell: with AES on both the slow side becomes much slower than it is, and with ChaCha20 on both the gap
/// goes away, for then neither has use for the instructions.
fn weigh_avoided(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let reference = crate::evidence::worth::reference(gap)?;
    let by_aes = shown_look(gap, SUITE.of(gap.fast))?;
    let [Some(with_aes), Some(with_chacha)] = [by_aes.slow_ns(), reference.slow_ns()] else {
        return Err(Standing::Undecided(gap.not_measured("the rates are not known".to_owned())));
    };
    let text = format!(
        "on {slow} itself a request takes {} with AES and {} with ChaCha20, which it chose",
        format_duration_ns(with_aes),
        format_duration_ns(with_chacha)
    );
    let on_itself = gap.evidence(&by_aes, text);
    if with_aes <= with_chacha {
        return Err(Standing::RuledOut(on_itself));
    }
    if with_aes < CLEARLY_DEARER * with_chacha {
        return Err(Standing::Undecided(on_itself));
    }
    let flip = crate::cause::shown_flip(gap, CHACHA20)?;
    // With the instructions AES is at least as fast on the fast side.
    let gains = reference.fast_ns().zip(flip.view.fast_ns()).is_some_and(|(aes, chacha)| aes < chacha);
    if !flip.moved() {
        return Err(did_not_move(gap, &flip));
    }
    if !gains {
        let text = format!("AES is not faster than ChaCha20 on {fast} either");
        return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
    }
    let told = Told {
        summary: format!(
            "{slow} lacks the CPU's AES instructions, or does not use them, and so it has chosen ChaCha20, where {fast} uses \
             AES. With ChaCha20 on both, {} of the gap is gone.",
            flip.percent()
        ),
        remedy: format!(
            "ChaCha20 is the right choice for {slow} as it is. Does `grep -m1 -ow aes /proc/cpuinfo` on its host find the \
             instructions? A virtual machine may hide them: give it a CPU type that has them (`host` instead of kvm64 or \
             qemu64). {}",
            find_out(&slow)
        ),
        facts: vec![on_itself],
        further: Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, Confidence::Likely, told))
}

fn judge(gap: &Gap<'_>, flip: &Flip<'_>, sweep: Result<View<'_>, String>) -> Standing {
    let Some(reference) = gap.known_reference() else {
        return Standing::Undecided(gap.not_measured("there is no reference".to_owned()));
    };
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let ruled_out = |why: String| Standing::RuledOut(gap.evidence(&flip.view, why));
    let open = |why: String| Standing::Undecided(gap.evidence(&flip.view, why));
    let times = || {
        let [reference, chacha] = [reference, &flip.view];
        Some([[reference.slow_ns()?, chacha.slow_ns()?], [reference.fast_ns()?, chacha.fast_ns()?]])
    };
    let Some([[slow_aes, slow_chacha], [fast_aes, fast_chacha]]) = times() else {
        return open("the rates are not known".to_owned());
    };

    // Each side against itself. The two rates of a side were measured at different times, so their scatter is at least
    // that of the pairs, and what is within the practical margin makes no difference.
    let scatter = (Flip::MANY_LOOKS * reference.log.half().hypot(flip.view.log.half())).max(gap.case.margin_log());
    let slower_by_aes = (slow_aes / slow_chacha).ln();
    let [shown_aes, shown_chacha] = [slow_aes, slow_chacha].map(format_duration_ns);
    let on_itself = format!("on {slow} itself a request takes {shown_aes} with AES and {shown_chacha} with ChaCha20");
    if slower_by_aes <= 0.0 {
        return ruled_out(format!("{on_itself}: AES is not what is slow there"));
    }
    if slower_by_aes <= scatter {
        return open(format!("{on_itself}: too close to tell"));
    }
    // A machine that is slower while one of the probes is made is so for both sides: it may make a part of what the slow
    // side shows, never most of it.
    let on_fast_too = (fast_aes / fast_chacha).ln();
    if on_fast_too > scatter && on_fast_too > 0.5 * slower_by_aes {
        return open(format!("AES is slower than ChaCha20 on {fast} as well: that is not what separates them"));
    }

    let mut further = vec![gap.evidence(&flip.view, on_itself)];
    match sweep {
        Ok(first_byte) => match judge_bytes(gap, reference, flip, &first_byte, slow_aes - slow_chacha) {
            Ok(line) => further.push(line),
            Err(standing) => return standing,
        },
        // Without the sweep what is left under ChaCha20 cannot be told from a ChaCha20 that is slow too.
        Err(_) if !flip.gone.explains() || flip.view.ratio >= SOUND_CHACHA20 => {
            return open(format!("{}: without a size sweep that is not enough", gap.tell_flip(flip)));
        }
        Err(_) if slow_aes - slow_chacha < Flip::NOTEWORTHY * (slow_aes - fast_aes) => {
            return open(format!("{slow} gains too little by ChaCha20"));
        }
        Err(why) => further.push(gap.not_measured(format!("not shown: that the gap is paid per byte ({why})"))),
    }
    if !flip.moved() {
        return did_not_move(gap, flip);
    }
    let cipher = gap.text(gap.slow, web::TLS_CIPHER).map_or_else(String::new, sanitize_line);
    let (why, mut confidence) = match gap.lens(gap.slow) {
        // The machine is at hand: what a client can only infer is to be seen there.
        LensLook::NotAsked(probe) => return Standing::Wants(vec![probe]),
        LensLook::Missing(why) => {
            further.push(gap.not_measured(format!("its libcrypto was not measured alone: {why}")));
            ("either its TLS library does not use them or the CPU lacks them".to_owned(), Confidence::Likely)
        }
        LensLook::Shown(reading) => match under_the_lens(gap, reading, flip) {
            Ok(told) => {
                further.extend(lens_evidence(gap, reading));
                told
            }
            Err(standing) => return standing,
        },
    };
    let is_masked = matches!(gap.lens(gap.slow), LensLook::Shown(reading) if reading.hardware == HardwareUse::Masked);
    let library_is_at_fault =
        matches!(gap.lens(gap.slow), LensLook::Shown(reading) if reading.hardware == HardwareUse::NotUsed);
    match gap.on_twins(if library_is_at_fault { TwinChange::SystemLibcrypto } else { TwinChange::NoMask }) {
        Twins::NotAllowed => {}
        Twins::Wanted(probe) => return Standing::Wants(vec![probe]),
        Twins::Told(twins) => {
            if twins.confirms() {
                confidence = Confidence::Confirmed;
            }
            further.extend(twins.evidence);
        }
    }
    let told = Told {
        summary: format!(
            "{slow} encrypts AES without the CPU's AES instructions: {why}. With ChaCha20 instead, {} of the gap is \
             gone.",
            flip.percent()
        ),
        remedy: if is_masked { unmask(&slow) } else { find_out(&slow) },
        facts: vec![gap.first_contact(format!("both sides use {cipher}"))],
        further,
    };
    fit(gap, &ENTRY, flip, confidence, told)
}

/// The remedy where nothing is known of the server's library.
fn find_out(slow: &str) -> String {
    format!(
        "On {slow}'s host: does `grep -m1 -ow aes /proc/cpuinfo` find the CPU's AES instructions? Which libcrypto does the \
         server map (`grep libcrypto /proc/PID/maps`), and does its environment mask them (`tr '\\0' '\\n' \
         </proc/PID/environ | grep OPENSSL_ia32cap`)? Run `openssl speed -elapsed -evp aes-256-gcm` on that library with \
         and without `OPENSSL_ia32cap=~0x200000200000000`: equal figures mean that it never uses them. Install or map a \
         libcrypto built with assembly; on a CPU without the instructions prefer ChaCha20."
    )
}

fn unmask(slow: &str) -> String {
    format!(
        "Start {slow}'s server without OPENSSL_ia32cap (on Arm: OPENSSL_armcap) in its environment. It may come from the \
         service's unit (`systemctl show -p Environment UNIT`), from the script that starts the server, or from \
         /etc/environment or /etc/default. A reload is not enough: the library reads it once, when the server starts."
    )
}

/// What the lens adds to the signature, and how firm both are together. From outside only it is likely: an AES that is
/// slow for another reason (a cost per block, say) looks the same.
fn under_the_lens(gap: &Gap<'_>, reading: &LensReading, flip: &Flip<'_>) -> Result<(String, Confidence), Standing> {
    // A server that was read to lack the instructions needs no flip to tell so; it tells what they are worth. Where the mask
    // took more than AES, ChaCha20 takes away a part of the gap only.
    let is_read = reading.capabilities.as_ref().and_then(Capabilities::has_aes) == Some(false);
    let firm =
        if flip.confirms() || is_read && flip.gone.is_most() { Confidence::Confirmed } else { Confidence::Likely };
    let slow = gap.slow_name();
    let in_server = reading.capabilities.as_ref().and_then(Capabilities::has_aes);
    Ok(match (&reading.hardware, in_server) {
        (HardwareUse::NotUsed, _) => ("the libcrypto that it maps never uses them".to_owned(), firm),
        (HardwareUse::Masked, Some(false)) => {
            let what = "they were masked (OPENSSL_ia32cap or its like) when the server started";
            (what.to_owned(), firm)
        }
        (HardwareUse::Masked, _) => ("its environment masks them (OPENSSL_ia32cap or its like)".to_owned(), firm),
        (HardwareUse::NotOffered, _) => ("the CPU, or the virtual machine's view of it, has none".to_owned(), firm),
        // Both halves: the library is quick with them, and the one in the server has them.
        (HardwareUse::Used, Some(true)) => {
            if let Some(other) = other_tls_library(gap) {
                let text = format!(
                    "{slow}'s libcrypto uses the CPU's AES instructions, but its server has {other} as well, and which of \
                     them encrypts is not known"
                );
                return Err(Standing::Undecided(gap.on_lens(reading, text)));
            }
            let text = format!("{slow}'s libcrypto uses the CPU's AES instructions, in the running server too{}", gains(reading));
            return Err(Standing::RuledOut(gap.on_lens(reading, text)));
        }
        (HardwareUse::Unknown(why), Some(true)) => {
            let why = sanitize_line(why);
            let text = format!("the libcrypto in {slow}'s server has the CPU's AES instructions; whether it gains by them: {why}");
            return Err(Standing::Undecided(gap.on_lens(reading, text)));
        }
        // Servers such as nginx overwrite their environment, so that a mask in it can no longer be read: that the library
        // is sound in a process of ours does not acquit the one in the server.
        (HardwareUse::Used, _) => (
            "its libcrypto can use them, and does in a new process, so the server was probably started with a mask that \
             can no longer be read"
                .to_owned(),
            Confidence::Likely,
        ),
        (HardwareUse::Unknown(why), _) => (
            format!(
                "either its TLS library does not use them or the CPU lacks them (the lens did not tell: {})",
                sanitize_line(why)
            ),
            Confidence::Likely,
        ),
    })
}

/// What the library measured alone showed, and what the one in the running server holds.
fn lens_evidence(gap: &Gap<'_>, reading: &LensReading) -> Vec<Evidence> {
    let version = reading.identity.version.as_deref();
    let version = version.map_or_else(String::new, |version| format!(" ({})", sanitize_line(version)));
    let text = format!("{}{version}, measured alone{}", sanitize_line(&reading.library), gains(reading));
    let mut evidence = vec![gap.on_lens(reading, text)];
    match &reading.capabilities {
        Some(Capabilities::Masked(vector)) => {
            let processes: Vec<String> = vector.processes.iter().map(|process| process.pid.to_string()).collect();
            let (missing, processes) = (sanitize_line(&vector.missing.join(", ")), processes.join(", "));
            evidence.push(gap.on_lens(
                reading,
                format!(
                    "in the running server (processes {processes}) it lacks what it has in a new process: {missing}"
                ),
            ));
        }
        Some(Capabilities::NotRead(why)) => {
            let why = sanitize_line(why);
            evidence.push(
                gap.on_lens(reading, format!("which CPU features it has in the running server was not read: {why}")),
            );
        }
        Some(Capabilities::Whole(_)) | None => {}
    }
    evidence
}

/// How much the library gains by the instructions, where that was measured.
fn gains(reading: &LensReading) -> String {
    let of_gcm = reading.effects.iter().find(|effect| effect.op == LensOp::Aes256Gcm);
    of_gcm.and_then(|effect| effect.aes_mask).map_or_else(String::new, |gain| {
        format!(
            ": AES-256-GCM is {:.2}x as fast without a mask on the CPU's AES instructions as with it (interval {:.2} to \
             {:.2})",
            gain.ratio, gain.low, gain.high
        )
    })
}

/// The cost per byte: what is left of the time above that of a response of one byte.
fn judge_bytes(
    gap: &Gap<'_>,
    reference: &View<'_>,
    flip: &Flip<'_>,
    first_byte: &View<'_>,
    gain_ns: f64,
) -> Result<Evidence, Standing> {
    let open = |why: String| Standing::Undecided(gap.evidence(first_byte, why));
    let differences = || {
        let fixed = first_byte.difference_ns()?;
        Some((reference.difference_ns()?.minus(fixed), flip.view.difference_ns()?.minus(fixed)))
    };
    let Some((by_aes, by_chacha)) = differences() else {
        return Err(open("the rates are not known".to_owned()));
    };
    let Some(gone) = by_chacha.over(by_aes).map(Estimate::complement) else {
        return Err(open(format!("{}: {}", RANGE_1.phrase(), gap.tell(first_byte))));
    };
    let slow = gap.slow_name();
    let too = || gap.evidence(&flip.view, format!("{}: ChaCha20 is slow on {slow} as well", gap.tell_flip(flip)));
    if gone.high() < Flip::EXPLAINS {
        return Err(Standing::RuledOut(too()));
    }
    if gone.mid < Flip::EXPLAINS {
        return Err(Standing::Undecided(too()));
    }
    // What costs per byte on both sides (copies, the network, our own decryption) hides a slow ChaCha20 from the
    // difference, but less so from the ratio.
    let costs = || {
        let of = |chacha: f64, first: f64| {
            let half = (chacha * flip.view.log.half()).hypot(first * first_byte.log.half());
            Estimate::around(chacha - first, half)
        };
        let on_slow = of(flip.view.slow_ns()?, first_byte.slow_ns()?);
        on_slow.over(of(flip.view.fast_ns()?, first_byte.fast_ns()?))
    };
    // On the slow side itself, per byte.
    let dearer = || {
        let first = first_byte.slow_ns()?;
        Some((reference.slow_ns()? - first) / (flip.view.slow_ns()? - first)).filter(|times| times.is_finite())
    };
    let is_clearly_dearer = dearer().is_some_and(|times| times >= CLEARLY_DEARER);
    match costs() {
        Some(cost) if cost.low() > NO_ASSEMBLY => return Err(Standing::RuledOut(too())),
        Some(cost) if cost.mid > NO_ASSEMBLY => return Err(Standing::Undecided(too())),
        Some(cost) if cost.low() > SOUND_CHACHA20 && !is_clearly_dearer => return Err(Standing::RuledOut(too())),
        Some(cost) if cost.mid > SOUND_CHACHA20 && !is_clearly_dearer => return Err(Standing::Undecided(too())),
        // ChaCha20's own cost drowns in what is paid per request: then the difference alone has to be beyond doubt.
        None if gone.low() < Flip::EXPLAINS => return Err(Standing::Undecided(too())),
        Some(_) | None => {}
    }
    if gain_ns < Flip::NOTEWORTHY * by_aes.mid {
        return Err(open(format!("{slow} gains too little by ChaCha20")));
    }
    let share = per_byte_share(reference, first_byte).map_or_else(String::new, |share| percent(share.mid));
    let text = format!("{}: {}; {share} of the gap is paid per byte", RANGE_1.phrase(), gap.tell(first_byte));
    Ok(gap.evidence(first_byte, text))
}
